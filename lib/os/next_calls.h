// SPDX-License-Identifier: BSD-3-Clause
//
// The functions below our own doors of those that change mappings (interpose/mapping.cc). Libraries that
// watch memory for their caches of registrations (UCX, Open MPI) must go on seeing the calls, so a door goes
// on by the next definition after libcoco's. UCX writes a jump to its own function over the first bytes of
// what it finds by dlsym, which is our door, and goes on by syscall(): so that has a door too.
// Thread safety: any thread, and signal handlers. Fails: as the functions do.
#pragma once
#include <sys/types.h>

#include <cstddef>

namespace coco::os {

struct MappingCalls {
    void* (*mmap)(void*, std::size_t, int, int, int, off_t);
    int (*munmap)(void*, std::size_t);
    void* (*mremap)(void*, std::size_t, std::size_t, int, ...);
    int (*mprotect)(void*, std::size_t, int);
    int (*madvise)(void*, std::size_t, int);
    void* (*shmat)(int, const void*, int);
};
// The next definitions; the system calls themselves until the library's constructor has looked them up.
const MappingCalls& next_calls();
// The system calls themselves.
const MappingCalls& bare_calls();

}  // namespace coco::os
