// SPDX-License-Identifier: BSD-3-Clause
//
// The doors of what changes mappings: a program may map something else over memory of malloc's, or drop its
// pages, and that memory must behave as private memory would (heap/mapping_calls.h). The headers that declare
// them are not included: they give mmap another name where offsets are to have 64 bits.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>

#include "heap/mapping_calls.h"
#include "os/next_calls.h"

namespace heap = coco::heap;
using coco::os::bare_calls;
using coco::os::next_calls;

#define COCO_DOOR extern "C" __attribute__((visibility("default")))

COCO_DOOR void* mmap(void* address, std::size_t bytes, int protection, int flags, int fd,
                     off_t offset) noexcept {
    return heap::program_mmap(next_calls(), address, bytes, protection, flags, fd, offset);
}
COCO_DOOR void* mmap64(void* address, std::size_t bytes, int protection, int flags, int fd,
                       off_t offset) noexcept {
    return heap::program_mmap(next_calls(), address, bytes, protection, flags, fd, offset);
}
COCO_DOOR int munmap(void* address, std::size_t bytes) noexcept {
    return heap::program_munmap(next_calls(), address, bytes);
}
// The fifth argument is there with some flags only; reading it does no harm.
COCO_DOOR void* mremap(void* address, std::size_t bytes, std::size_t new_bytes, int flags, ...) noexcept {
    va_list rest;
    va_start(rest, flags);
    void* wanted = va_arg(rest, void*);
    va_end(rest);
    return heap::program_mremap(next_calls(), address, bytes, new_bytes, flags, wanted);
}
COCO_DOOR int mprotect(void* address, std::size_t bytes, int protection) noexcept {
    return heap::program_mprotect(next_calls(), address, bytes, protection);
}
COCO_DOOR int madvise(void* address, std::size_t bytes, int advice) noexcept {
    return heap::program_madvise(next_calls(), address, bytes, advice);
}
COCO_DOOR void* shmat(int id, const void* address, int flags) noexcept {
    return heap::program_shmat(next_calls(), id, address, flags);
}

#if defined(__x86_64__) || defined(__aarch64__)

// The parts of syscall.S that C++ can say.
#define COCO_OF_SYSCALL extern "C" __attribute__((visibility("hidden")))

COCO_OF_SYSCALL long coco_bare_syscall(long number, ...);
COCO_OF_SYSCALL long (*coco_next_syscall)(long number, ...);
long (*coco_next_syscall)(long number, ...) = coco_bare_syscall;

COCO_OF_SYSCALL long coco_failed_syscall(long result);
long coco_failed_syscall(long result) {
    errno = static_cast<int>(-result);
    return -1;
}

COCO_OF_SYSCALL long coco_mapping_syscall(long number, long a, long b, long c, long d, long e, long f);
long coco_mapping_syscall(long number, long a, long b, long c, long d, long e, long f) {
    auto* address = reinterpret_cast<void*>(a);
    auto bytes = static_cast<std::size_t>(b);
    auto as_number = [](void* result) { return reinterpret_cast<long>(result); };
    auto third = static_cast<int>(c), fourth = static_cast<int>(d), fifth = static_cast<int>(e);
    switch (number) {
        case SYS_mmap:
            return as_number(heap::program_mmap(bare_calls(), address, bytes, third, fourth, fifth, f));
        case SYS_munmap:
            return heap::program_munmap(bare_calls(), address, bytes);
        case SYS_mremap:
            return as_number(heap::program_mremap(bare_calls(), address, bytes, static_cast<std::size_t>(c),
                                                  fourth, reinterpret_cast<void*>(e)));
        case SYS_mprotect:
            return heap::program_mprotect(bare_calls(), address, bytes, third);
        case SYS_madvise:
            return heap::program_madvise(bare_calls(), address, bytes, third);
        default:  // SYS_shmat
            return as_number(heap::program_shmat(bare_calls(), static_cast<int>(a),
                                                 reinterpret_cast<const void*>(b), third));
    }
}

namespace {

__attribute__((constructor)) void look_up_syscall() {
    if (void* found = dlsym(RTLD_NEXT, "syscall"))
        coco_next_syscall = reinterpret_cast<long (*)(long, ...)>(found);
}

}  // namespace

#endif
