// SPDX-License-Identifier: BSD-3-Clause
//
// Test equipment, preloaded: makes all hosts look like one, as they do where the boot id cannot be read and
// nobody has namespaces. Then the process ids and descriptors of another host's ranks are those of ranks
// here, and only what lies in the memory itself tells them apart.
#undef _FILE_OFFSET_BITS  // open and open64 are two names here
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_other(const char* path, int flags, mode_t mode) {
    if (strcmp(path, "/proc/sys/kernel/random/boot_id") == 0) {
        errno = EACCES;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

#define OPEN(name)                                \
    int name(const char* path, int flags, ...) {  \
        va_list rest;                             \
        va_start(rest, flags);                    \
        const mode_t mode = va_arg(rest, mode_t); \
        va_end(rest);                             \
        return open_other(path, flags, mode);     \
    }
OPEN(open)
OPEN(open64)

ssize_t readlink(const char* path, char* text, size_t size) {
    static const char kSame[] = "pid:[4026531836]";
    if (strncmp(path, "/proc/self/ns/", 14) != 0) return syscall(SYS_readlinkat, AT_FDCWD, path, text, size);
    const size_t bytes = size < sizeof kSame - 1 ? size : sizeof kSame - 1;
    memcpy(text, kSame, bytes);
    return (ssize_t)bytes;
}
