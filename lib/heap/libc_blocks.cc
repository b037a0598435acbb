// SPDX-License-Identifier: BSD-3-Clause
#include "heap/libc_blocks.h"

#include <gnu/libc-version.h>
#include <jemalloc/jemalloc.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/bits.h"
#include "base/kernel.h"
#include "heap/segment.h"
#include "os/shared_memory.h"

#pragma GCC visibility push(hidden)
extern "C" {
void* coco_je_mallocx(std::size_t bytes, int flags);
int coco_je_mallctl(const char* name, void* old, std::size_t* old_bytes, void* value,
                    std::size_t value_bytes);
}
#pragma GCC visibility pop

namespace coco::heap {
namespace {

// Written by a constructor. Relaxed: a thread of another library's constructor may run meanwhile, to which no caller
// is libc yet.
constinit std::atomic<std::uintptr_t> g_libc{0}, g_libc_bytes{0};
// 0: none yet; the automatic arenas come first. The number is all that is published: jemalloc itself orders what
// lies behind it.
constinit std::atomic<unsigned> g_arena{0};

int find_libc(dl_phdr_info* object, std::size_t, void*) {
    auto inside = reinterpret_cast<std::uintptr_t>(&gnu_get_libc_version);
    std::uintptr_t bytes = 0;
    for (int i = 0; i < object->dlpi_phnum; ++i)
        if (object->dlpi_phdr[i].p_type == PT_LOAD)
            bytes = std::max(bytes, object->dlpi_phdr[i].p_vaddr + object->dlpi_phdr[i].p_memsz);
    if (inside - object->dlpi_addr >= bytes) return 0;
    g_libc.store(object->dlpi_addr, std::memory_order_relaxed);
    g_libc_bytes.store(bytes, std::memory_order_relaxed);
    return 1;
}

void* alloc(extent_hooks_t*, void* wanted, std::size_t bytes, std::size_t alignment, bool* zero, bool* commit,
            unsigned) {
    if (wanted != nullptr) return nullptr;
    void* mapped =
        kernel::mmap(nullptr, bytes + alignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    auto first = reinterpret_cast<std::uint64_t>(mapped);
    std::uint64_t begin = base::round_up(first, alignment), end = begin + bytes;
    if (begin > first) kernel::munmap(mapped, begin - first);
    kernel::munmap(reinterpret_cast<void*>(end), first + bytes + alignment - end);
    *zero = *commit = true;
    return reinterpret_cast<void*>(begin);
}

bool split(extent_hooks_t*, void*, std::size_t, std::size_t, std::size_t, bool, unsigned) { return false; }
bool merge(extent_hooks_t*, void*, std::size_t, void*, std::size_t, bool, unsigned) { return false; }

// Never given back: it is little.
extent_hooks_t g_hooks = {alloc, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, split, merge};

// Not under a lock of ours: a second arena, should two threads meet here, harms nobody.
unsigned arena() {
    unsigned made = g_arena.load(std::memory_order_relaxed);
    if (made != 0) return made;
    int saved = errno;
    extent_hooks_t* hooks = &g_hooks;
    std::size_t bytes = sizeof made;
    if (coco_je_mallctl("arenas.create", &made, &bytes, &hooks, sizeof(void*)) != 0) made = 0;
    g_arena.store(made, std::memory_order_relaxed);
    errno = saved;
    return made;
}

__attribute__((constructor)) void look_for_libc() {
    if (own().bytes != 0) dl_iterate_phdr(find_libc, nullptr);
}

}  // namespace

bool is_in_libc(const void* caller) {
    return reinterpret_cast<std::uintptr_t>(caller) - g_libc.load(std::memory_order_relaxed) <
           g_libc_bytes.load(std::memory_order_relaxed);
}

void* allocate_private(std::size_t bytes, bool zeroed) {
    unsigned index = arena();
    if (index == 0) return nullptr;
    return coco_je_mallocx(
        bytes, static_cast<int>(MALLOCX_ARENA(index)) | MALLOCX_TCACHE_NONE | (zeroed ? MALLOCX_ZERO : 0));
}

}  // namespace coco::heap
