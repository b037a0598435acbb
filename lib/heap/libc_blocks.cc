// SPDX-License-Identifier: BSD-3-Clause
#include "heap/libc_blocks.h"

#include <gnu/libc-version.h>

#include <algorithm>
#include <atomic>

#include "heap/segment.h"
#include "os/symbols.h"

namespace coco::heap {
namespace {

// Written by a constructor. Relaxed: a thread of another library's constructor may run meanwhile, to which no
// caller is libc yet.
constinit std::atomic<std::uintptr_t> g_libc{0}, g_libc_bytes{0};

bool find_libc(const dl_phdr_info& object) {
    auto inside = reinterpret_cast<std::uintptr_t>(&gnu_get_libc_version);
    std::uintptr_t bytes = 0;
    for (int i = 0; i < object.dlpi_phnum; ++i)
        if (object.dlpi_phdr[i].p_type == PT_LOAD)
            bytes = std::max(bytes, object.dlpi_phdr[i].p_vaddr + object.dlpi_phdr[i].p_memsz);
    if (inside - object.dlpi_addr >= bytes) return false;
    g_libc.store(object.dlpi_addr, std::memory_order_relaxed);
    g_libc_bytes.store(bytes, std::memory_order_relaxed);
    return true;
}

__attribute__((constructor)) void look_for_libc() {
    if (own().bytes != 0) os::any_object(find_libc);
}

}  // namespace

bool is_in_libc(const void* caller) {
    return reinterpret_cast<std::uintptr_t>(caller) - g_libc.load(std::memory_order_relaxed) <
           g_libc_bytes.load(std::memory_order_relaxed);
}

}  // namespace coco::heap
