// SPDX-License-Identifier: BSD-3-Clause
#include "heap/large.h"

#include <jemalloc/jemalloc.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/bits.h"
#include "heap/kept.h"
#include "heap/own_segment.h"
#include "heap/segment.h"
#include "heap/spans.h"
#include "heap/system.h"
#include "os/shared_memory.h"

#pragma GCC visibility push(hidden)
extern "C" {
void* coco_je_malloc(std::size_t bytes);
void* coco_je_realloc(void* block, std::size_t bytes);
void coco_je_free(void* block);
std::size_t coco_je_malloc_usable_size(const void* block);
std::size_t coco_je_xallocx(void* block, std::size_t bytes, std::size_t extra, int flags);
int coco_je_mallctl(const char* name, void* old, std::size_t* old_bytes, void* value,
                    std::size_t value_bytes);
}
#pragma GCC visibility pop

namespace coco::heap {
namespace {

// Relaxed: that the hooks are set is all it says, and jemalloc itself orders what it reads of them.
constinit std::atomic<bool> g_watched{false};
thread_local bool t_zeros = false;

std::byte* at(void* address, std::size_t offset = 0) { return static_cast<std::byte*>(address) + offset; }

void trim(std::byte* from, const std::byte* to) {
    if (from != to) unmap(from, static_cast<std::size_t>(to - from));
}

// jemalloc knows what it has of the address space: it never asks for a certain address in vain.
void* alloc(extent_hooks_t*, void* wanted, std::size_t bytes, std::size_t alignment, bool* zero, bool* commit,
            unsigned) {
    if (wanted != nullptr) return nullptr;
    std::size_t more = alignment > span_unit() ? alignment - span_unit() : 0;
    void* mapped = map(nullptr, bytes + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    if (mapped == MAP_FAILED) return nullptr;
    std::uint64_t first = reinterpret_cast<std::uint64_t>(mapped);
    std::byte* begin = at(mapped, base::round_up(first, alignment) - first);
    trim(at(mapped), begin);
    trim(begin + bytes, at(mapped, bytes + more));
    *zero = *commit = true;
    return begin;
}

bool commit(extent_hooks_t*, void* address, std::size_t, std::size_t offset, std::size_t bytes, unsigned) {
    std::byte* begin = at(address, offset);
    // Decided by the address alone, as the allocator counts on zeros: only the segment's own process knows
    // what is kept here.
    if (own().bytes != 0 && is_carvable(begin)) {
        int saved = errno;
        take_large(begin, bytes, t_zeros);
        errno = saved;
        return false;
    }
    // This was decommitted before the arena was watched.
    return map(begin, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED) == MAP_FAILED;
}

bool decommit(extent_hooks_t*, void* address, std::size_t, std::size_t offset, std::size_t bytes, unsigned) {
    std::byte* begin = at(address, offset);
    int saved = errno;
    bool done = is_shared(begin, bytes) && free_large(begin, bytes);
    errno = saved;
    return !done;
}

bool purge(extent_hooks_t*, void* address, std::size_t, std::size_t offset, std::size_t bytes, unsigned) {
    return give_up_pages(at(address, offset), bytes) != 0;
}

bool split(extent_hooks_t*, void*, std::size_t, std::size_t, std::size_t, bool, unsigned) { return false; }
bool merge(extent_hooks_t*, void*, std::size_t, void*, std::size_t, bool, unsigned) { return false; }

// No dalloc: jemalloc keeps the address space, as it does in its other arenas. (To give private memory back
// here crashed programs of several threads once in thirty runs.)
extent_hooks_t g_hooks = {alloc, nullptr, nullptr, commit, decommit, nullptr, purge, split, merge};

// Address space for a block that grows: much, while most of the segment is untouched.
std::size_t room_to_grow(std::size_t bytes) {
    // A forked child's copy of the heap counts as data, untouched room included.
    rlimit data{};
    if (getrlimit(RLIMIT_DATA, &data) != 0 || data.rlim_cur != RLIM_INFINITY) return bytes;
    HeapFigures figures{};
    fill_span_figures(figures);
    if (must_reserve_pages() || figures.carved_bytes > carvable().bytes / 2) return bytes;
    return std::max<std::size_t>(bytes, carvable().bytes / 16);
}

// Moves a block to the start of such room, and frees the rest of it.
void* move_large(void* block, std::size_t bytes, std::size_t room) {
    void* moved = coco_je_malloc(room);
    if (moved == nullptr) return nullptr;
    if (!is_shared(moved, room) || coco_je_xallocx(moved, bytes, 0, 0) < bytes) {
        coco_je_free(moved);
        return nullptr;
    }
    std::memcpy(moved, block, std::min(bytes, coco_je_malloc_usable_size(block)));
    coco_je_free(block);
    return moved;
}

}  // namespace

void* reallocate_large(void* block, std::size_t bytes) {
    if (block != nullptr && coco_je_malloc_usable_size(block) < bytes &&
        g_watched.load(std::memory_order_relaxed)) {
        if (coco_je_xallocx(block, bytes, 0, 0) >= bytes) return block;
        std::size_t room = room_to_grow(bytes);
        if (void* moved = room > bytes ? move_large(block, bytes, room) : nullptr) return moved;
    }
    block = coco_je_realloc(block, bytes);
    watch_large();
    return block;
}

void watch_large() {
    if (g_watched.load(std::memory_order_relaxed) || own().bytes == 0) return;
    int saved = errno;
    extent_hooks_t* hooks = &g_hooks;
    // The arena after the automatic ones (narenas in system.cc).
    if (coco_je_mallctl("arena.8.extent_hooks", nullptr, nullptr, &hooks, sizeof(void*)) == 0)
        g_watched.store(true, std::memory_order_relaxed);
    errno = saved;
}

void expect_zeros(bool whether) { t_zeros = whether; }

}  // namespace coco::heap
