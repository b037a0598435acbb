// SPDX-License-Identifier: BSD-3-Clause
#include "os/next_calls.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

namespace coco::os {

constinit thread_local int t_own_calls = 0;

namespace {

long as_libc(long result) {
    if (static_cast<unsigned long>(result) < static_cast<unsigned long>(-4095L)) return result;
    errno = static_cast<int>(-result);
    return -1;
}
long number(const void* address) { return reinterpret_cast<long>(address); }
long number(std::size_t bytes) { return static_cast<long>(bytes); }
void* pointer(long result) { return reinterpret_cast<void*>(as_libc(result)); }
int status(long result) { return static_cast<int>(as_libc(result)); }

void* bare_mmap(void* address, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
    return pointer(bare_call(SYS_mmap, number(address), number(bytes), protection, flags, fd, offset));
}
int bare_munmap(void* address, std::size_t bytes) {
    return status(bare_call(SYS_munmap, number(address), number(bytes)));
}
void* bare_mremap(void* address, std::size_t bytes, std::size_t new_bytes, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    void* wanted = va_arg(rest, void*);
    va_end(rest);
    return pointer(
        bare_call(SYS_mremap, number(address), number(bytes), number(new_bytes), flags, number(wanted)));
}
int bare_mprotect(void* address, std::size_t bytes, int protection) {
    return status(bare_call(SYS_mprotect, number(address), number(bytes), protection));
}
int bare_madvise(void* address, std::size_t bytes, int advice) {
    return status(bare_call(SYS_madvise, number(address), number(bytes), advice));
}
void* bare_shmat(int id, const void* address, int flags) {
    return pointer(bare_call(SYS_shmat, id, number(address), flags));
}
int bare_shmdt(const void* address) { return status(bare_call(SYS_shmdt, number(address))); }
int bare_remap_file_pages(void* address, std::size_t bytes, int protection, std::size_t page, int flags) {
    return status(
        bare_call(SYS_remap_file_pages, number(address), number(bytes), protection, number(page), flags));
}

constexpr MappingCalls kBare = {bare_mmap,    bare_munmap, bare_mremap, bare_mprotect,
                                bare_madvise, bare_shmat,  bare_shmdt,  bare_remap_file_pages};
// Looked up before the program has threads; those of other libraries' constructors call one or the other, each of
// which does.
constinit MappingCalls g_next = kBare;

template <class Function>
void look_up(const char* name, Function& function) {
    if (void* found = dlsym(RTLD_NEXT, name)) function = reinterpret_cast<Function>(found);
}

__attribute__((constructor)) void look_all_up() {
    look_up("mmap", g_next.mmap);
    look_up("munmap", g_next.munmap);
    look_up("mremap", g_next.mremap);
    look_up("mprotect", g_next.mprotect);
    look_up("madvise", g_next.madvise);
    look_up("shmat", g_next.shmat);
    look_up("shmdt", g_next.shmdt);
    look_up("remap_file_pages", g_next.remap_file_pages);
}

}  // namespace

const MappingCalls& next_calls() { return g_next; }
const MappingCalls& bare_calls() { return kBare; }

long bare_call(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    register long sixth __asm__("r9") = f;
    long result = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long which __asm__("x8") = number;
    register long first __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    register long fifth __asm__("x4") = e;
    register long sixth __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(first)
                     : "r"(which), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "memory");
    return first;
#else
    long result = syscall(number, a, b, c, d, e, f);  // which has no door there
    return result == -1 ? -static_cast<long>(errno) : result;
#endif
}

}  // namespace coco::os
