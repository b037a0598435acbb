// SPDX-License-Identifier: BSD-3-Clause
#include "os/next_calls.h"

#include <dlfcn.h>

#include <cstdarg>

#include "base/kernel.h"

namespace coco::os {
namespace {

void* bare_mmap(void* address, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
    return kernel::mmap(address, bytes, protection, flags, fd, static_cast<std::uint64_t>(offset));
}
void* bare_mremap(void* address, std::size_t bytes, std::size_t new_bytes, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    void* wanted = va_arg(rest, void*);
    va_end(rest);
    return kernel::mremap(address, bytes, new_bytes, flags, wanted);
}

constexpr MappingCalls kBare = {bare_mmap,        kernel::munmap,  bare_mremap,
                                kernel::mprotect, kernel::madvise, kernel::shmat};
// Looked up before the program has threads; those of other libraries' constructors call one or the other,
// each of which does.
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
}

}  // namespace

const MappingCalls& next_calls() { return g_next; }
const MappingCalls& bare_calls() { return kBare; }

}  // namespace coco::os
