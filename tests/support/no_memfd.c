// SPDX-License-Identifier: BSD-3-Clause
//
// A kernel without memfd, for the program that this is preloaded to: shared memory is then on /dev/shm,
// however small that is.
#include <errno.h>

int memfd_create(const char* name, unsigned flags) {
    (void)name, (void)flags;
    errno = ENOSYS;
    return -1;
}
