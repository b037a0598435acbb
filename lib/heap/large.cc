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
#include <mutex>

#include "base/bits.h"
#include "base/kernel.h"
#include "base/lock.h"
#include "base/text.h"
#include "heap/dumps.h"
#include "heap/kept.h"
#include "heap/lock_all.h"
#include "heap/overlays.h"
#include "heap/own_segment.h"
#include "heap/private_blocks.h"
#include "heap/segment.h"
#include "heap/spans.h"
#include "heap/system.h"
#include "os/cpu.h"
#include "os/shared_memory.h"

#pragma GCC visibility push(hidden)
extern "C" {
void* coco_je_mallocx(std::size_t bytes, int flags);
void* coco_je_rallocx(void* block, std::size_t bytes, int flags);
void coco_je_free(void* block);
std::size_t coco_je_malloc_usable_size(const void* block);
std::size_t coco_je_xallocx(void* block, std::size_t bytes, std::size_t extra, int flags);
int coco_je_mallctl(const char* name, void* old, std::size_t* old_bytes, void* value,
                    std::size_t value_bytes);
}
#pragma GCC visibility pop

namespace coco::heap {
namespace {

// One for blocks below kLargeShared, whose pages stay for a while when they are freed, as the C library, too, has such blocks
// on its heap once one was freed; and one for larger ones, which go back at once, or are kept for a loop (kept.h).
enum Kind { kMiddling, kHuge, kKinds };
Kind kind_of(std::size_t bytes) { return bytes < kLargeShared ? kMiddling : kHuge; }
// Their numbers; 0: not made yet. Relaxed: jemalloc itself orders what it reads of an arena.
constinit std::atomic<unsigned> g_arenas[kKinds] = {};
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
    // Where the kernel refuses, for too many mappings, say, the block is shared; and where the program locks what it maps, as
    // the kernel would fill all of this room at once.
    if (bears_private() && !locks_later_pages() && is_carvable(begin))
        static_cast<void>(make_private(begin, bytes));
    *zero = true;
    if (is_carvable(begin) && !*commit)
        leave_out_of_dumps(begin, bytes);
    else
        *commit = true;
    return begin;
}

bool commit(extent_hooks_t*, void* address, std::size_t, std::size_t offset, std::size_t bytes, unsigned) {
    std::byte* begin = at(address, offset);
    // Decided by the address alone, as the allocator counts on zeros: only the segment's own process knows
    // what is kept here.
    if (own().bytes != 0 && is_carvable(begin)) {
        int saved = errno;
        put_into_dumps(begin, bytes);
        take_large(begin, bytes, t_zeros);
        errno = saved;
        return false;
    }
    // This was decommitted before the arena was watched.
    return map(begin, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED) == MAP_FAILED;
}

// Whether a range is the heap's as far as the program's calls were seen and, where it is shared, as the kernel says.
bool is_intact(std::byte* begin, std::size_t bytes) {
    if (own().bytes == 0 || !is_carvable(begin) || is_changed(begin, bytes, kGone)) return false;
    return is_private(begin, bytes) || is_shared(begin, bytes);
}

bool decommit(extent_hooks_t*, void* address, std::size_t, std::size_t offset, std::size_t bytes, unsigned) {
    std::byte* begin = at(address, offset);
    int saved = errno;
    bool done = is_intact(begin, bytes) && free_large(begin, bytes);
    if (done) leave_out_of_dumps(begin, bytes);
    errno = saved;
    return !done;
}

bool purge(extent_hooks_t*, void* address, std::size_t, std::size_t offset, std::size_t bytes, unsigned) {
    int saved = errno;
    bool failed = give_up_pages(at(address, offset), bytes) != 0;
    errno = saved;
    return failed;
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
    if (kernel::getrlimit(RLIMIT_DATA, &data) != 0 || data.rlim_cur != RLIM_INFINITY) return bytes;
    HeapFigures figures{};
    fill_span_figures(figures);
    // Private room would be filled where the program locks what it maps.
    if (locks_later_pages() || must_reserve_pages() || figures.carved_bytes > carvable().bytes / 2)
        return bytes;
    return std::max<std::size_t>(bytes, carvable().bytes / 16);
}

// The arena of such blocks, made when the first is asked for.
unsigned make_arena(Kind kind) {
    static constinit base::Lock making;
    std::scoped_lock hold(making);
    if (unsigned made = g_arenas[kind].load(std::memory_order_relaxed)) return made;
    int saved = errno;
    unsigned made = 0;
    std::size_t bytes = sizeof made;
    extent_hooks_t* hooks = &g_hooks;
    if (coco_je_mallctl("arenas.create", &made, &bytes, &hooks, sizeof(void*)) != 0) made = 0;
    base::Text name;
    if (made != 0 && kind == kHuge) {
        name << "arena." << made << ".dirty_decay_ms" << '\0';
        ssize_t at_once = 0;
        coco_je_mallctl(name.view().data(), nullptr, nullptr, &at_once, sizeof at_once);
    } else if (made != 0) {
        // Free neighbours of together so many bytes go back at once.
        name << "arena." << made << ".oversize_threshold" << '\0';
        std::size_t threshold = std::size_t{256} << 20;
        coco_je_mallctl(name.view().data(), nullptr, nullptr, &threshold, sizeof threshold);
    }
    g_arenas[kind].store(made, std::memory_order_relaxed);
    errno = saved;
    return made;
}

// By which jemalloc takes such a block from its arena; none of them without a segment.
int arena_flags(std::size_t bytes) {
    const Kind kind = kind_of(bytes);
    unsigned arena = g_arenas[kind].load(std::memory_order_relaxed);
    if (own().bytes == 0 && arena == 0) return 0;
    if (arena == 0) arena = make_arena(kind);
    return arena == 0 ? 0 : static_cast<int>(MALLOCX_ARENA(arena)) | MALLOCX_TCACHE_NONE;
}

// Moves a block's bytes to another block and frees it.
void* move_to(void* moved, void* block, std::size_t bytes) {
    if (!move_private(static_cast<std::byte*>(block), static_cast<std::byte*>(moved), bytes))
        std::memcpy(moved, block, bytes);
    coco_je_free(block);
    return moved;
}

// Moves a block to the start of such room, and frees the rest of it.
void* move_to_room(void* block, std::size_t usable, std::size_t bytes, std::size_t room) {
    void* moved = allocate_large(room, 0, false);
    if (moved == nullptr) return nullptr;
    if (!is_intact(static_cast<std::byte*>(moved), room) || coco_je_xallocx(moved, bytes, 0, 0) < bytes) {
        coco_je_free(moved);
        return nullptr;
    }
    return move_to(moved, block, std::min(bytes, usable));
}

}  // namespace

std::size_t large_bytes() { return bears_private() ? kLarge : kLargeShared; }

void* allocate_large(std::size_t bytes, std::size_t alignment, bool zeroed) {
    const int flags = arena_flags(bytes);
    // Page bounds, as pages are moved from one block to another.
    const int aligned = MALLOCX_ALIGN(std::max<std::size_t>(alignment, os::page_bytes()));
    t_zeros = zeroed;
    void* block = coco_je_mallocx(bytes, flags | aligned | (zeroed ? MALLOCX_ZERO : 0));
    t_zeros = false;
    return block;
}

void* reallocate_large(void* block, std::size_t bytes) {
    if (block == nullptr) return allocate_large(bytes, 0, false);
    const std::size_t usable = coco_je_malloc_usable_size(block);
    const bool is_ours = is_large(usable);
    if (is_ours && usable < bytes && coco_je_xallocx(block, bytes, 0, 0) >= bytes) return block;
    if (is_ours && usable >= bytes) return coco_je_rallocx(block, bytes, arena_flags(bytes));
    const std::size_t room = is_ours ? room_to_grow(bytes) : bytes;
    if (void* moved = room > bytes ? move_to_room(block, usable, bytes, room) : nullptr) return moved;
    void* moved = allocate_large(bytes, 0, false);
    return moved != nullptr ? move_to(moved, block, usable) : nullptr;
}

}  // namespace coco::heap
