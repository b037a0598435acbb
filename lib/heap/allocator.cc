// SPDX-License-Identifier: BSD-3-Clause
#include "heap/heap.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "base/kept_errno.h"
#include "base/log.h"
#include "heap/arenas.h"
#include "heap/fork.h"
#include "heap/gone.h"
#include "heap/libc_blocks.h"
#include "heap/malloc_family.h"
#include "heap/overlays.h"
#include "heap/private_jemalloc.h"
#include "heap/recent_blocks.h"
#include "heap/segment.h"
#include "heap/system.h"
#include "os/clock.h"

// A name of jemalloc's for all arenas at once (MALLCTL_ARENAS_ALL).
#define COCO_ALL_ARENAS(before, after) before "4096" after

namespace coco::heap {
namespace {

// jemalloc makes its first arena before it has read oversize_threshold (5.3): without this, the main thread's
// blocks from 8 MiB on are given back at every free, which glibc does from 32 MiB on.
__attribute__((constructor)) void correct_first_arena() {
    if (own().bytes == 0) return;  // a process that is no rank needs no allocator of ours
    std::size_t bytes = 32u << 20;
    coco_je_mallctl("arena.0.oversize_threshold", nullptr, nullptr, &bytes, sizeof bytes);
}

// As in glibc, each block is aligned for all types. jemalloc aligns blocks of 8 bytes to 8.
constexpr std::size_t kAlignment = 16;
std::size_t at_least_aligned(std::size_t bytes) { return std::max(bytes, kAlignment); }

// A block that jemalloc gives, or null, on its way to the program.
void* handed_out(void* block) {
    announce_gone();
    return block;
}

// The same; sets errno where there is no block, which not all of jemalloc's functions do.
void* or_no_memory(void* block) {
    if (block == nullptr) [[unlikely]]
        errno = ENOMEM;
    return handed_out(block);
}

// Kept out of the usual release, which is a jump. Pages of the segment over which the program has mapped
// something stay its own, and so does the block; pages that it has shut are opened for the next one.
[[gnu::noinline]] void release_changed(void* block) {
    if (is_early(block)) return;
    const std::size_t bytes = block != nullptr ? usable_bytes(block) : 0;
    const bool is_fit = is_carvable(block) ? !is_changed(block, bytes, kGone) && open_pages(block, bytes)
                                           : renew_private(block, bytes);
    if (is_fit) coco_je_free(block);
}

bool has_changed_pages(const void* block, std::size_t bytes) {
    return is_carvable(block) ? is_changed(block, bytes, kAnyChange) : is_private_changed(block, bytes);
}

void* allocate_fresh(std::size_t bytes, bool zeroed) {
    return zeroed ? coco_je_calloc(1, bytes) : coco_je_malloc(bytes);
}

// A block of kRecentFrom bytes or more.
[[gnu::noinline]] void* allocate_above_small(std::size_t bytes, bool zeroed) {
    void* block = anything_changed() ? nullptr : take_recent(bytes);
    if (block != nullptr && zeroed) std::memset(block, 0, bytes);
    if (block == nullptr)
        block =
            bytes >= kMiddle ? allocate_in(arena_of(bytes), bytes, 0, zeroed) : allocate_fresh(bytes, zeroed);
    if (block != nullptr) mark_recent(block, bytes);
    return or_no_memory(block);
}

[[gnu::always_inline]] inline void* allocate_for(const void* caller, std::size_t bytes, bool zeroed) {
    bytes = at_least_aligned(bytes);
    if (may_be_libcs(bytes) && is_in_libc(caller)) [[unlikely]]
        if (void* block = allocate_in(Arena::libc, bytes, 0, zeroed)) return block;
    if (bytes < kRecentFrom) [[likely]]
        return handed_out(allocate_fresh(bytes, zeroed));  // which says ENOMEM itself
    return allocate_above_small(bytes, zeroed);
}

void* reallocate_unchanged(void* block, std::size_t bytes) {
    if (bytes == 0 && block != nullptr) return coco_je_realloc(block, 0);
    bytes = at_least_aligned(bytes);
    return or_no_memory(bytes < kMiddle ? coco_je_realloc(block, bytes) : reallocate_large(block, bytes));
}

// Early blocks are not the allocator's, and pages that the program has changed are not the allocator's to
// move or to cut.
[[gnu::noinline]] void* reallocate_changed(void* block, std::size_t bytes) {
    if (!is_early(block) && !has_changed_pages(block, usable_bytes(block)))
        return reallocate_unchanged(block, bytes);
    void* moved = bytes != 0 ? allocate(bytes) : nullptr;
    if (bytes != 0 && moved == nullptr) return nullptr;
    if (moved != nullptr) std::memcpy(moved, block, std::min(bytes, usable_bytes(block)));
    release(block);
    return moved;
}

}  // namespace

void* allocate(std::size_t bytes, const void* caller) { return allocate_for(caller, bytes, false); }

void* allocate_zeroed(std::size_t count, std::size_t bytes_each, const void* caller) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, bytes_each, &bytes)) return or_no_memory(nullptr);
    return allocate_for(caller, bytes, true);
}

void* allocate_aligned(std::size_t alignment, std::size_t bytes) {
    COCO_CHECK_DEAR(std::has_single_bit(alignment), "an alignment is a power of two");
    if (bytes >= kMiddle) return or_no_memory(allocate_in(arena_of(bytes), bytes, alignment, false));
    return or_no_memory(coco_je_memalign(std::max(alignment, kAlignment), at_least_aligned(bytes)));
}

void* allocate_shared(std::size_t alignment, std::size_t bytes) {
    COCO_CHECK_DEAR(std::has_single_bit(alignment), "an alignment is a power of two");
    if (bytes < kMiddle) return allocate_aligned(alignment, bytes);
    return or_no_memory(allocate_in(Arena::shared, bytes, alignment, false));
}

void* reallocate(void* block, std::size_t bytes) {
    if (anything_changed()) [[unlikely]]
        return reallocate_changed(block, bytes);
    return reallocate_unchanged(block, bytes);
}

namespace {

// So often we let jemalloc give back memory that has been free for long enough (dirty_decay_ms in system.cc).
// By itself it does so in allocations only.
constexpr std::uint64_t kBetweenDecays_ns = 1'000'000'000u;
constexpr std::uint32_t kCallsPerLook = 8;
constinit std::atomic<std::uint64_t> g_next_decay_ns{0};  // relaxed: it only elects a thread
constinit thread_local std::uint32_t t_calls = 0;

bool decay_is_due() {
    if (++t_calls % kCallsPerLook != 0) return false;
    std::uint64_t now = os::coarse_now_ns();
    std::uint64_t due = g_next_decay_ns.load(std::memory_order_relaxed);
    // Only one of several threads that come here does it.
    return now >= due &&
           g_next_decay_ns.compare_exchange_strong(due, now + kBetweenDecays_ns, std::memory_order_relaxed);
}

}  // namespace

void tend() {
    if (!decay_is_due()) [[likely]]
        return;
    if (!forks_are_guarded()) return;  // the allocator sleeps: to ask it anything would wake it
    const base::KeptErrno kept;
    drop_recent();
    coco_je_mallctl(COCO_ALL_ARENAS("arena.", ".decay"), nullptr, nullptr, nullptr, 0);
    announce_gone();
}

void release(void* block) {
    if (anything_changed()) [[unlikely]]
        return release_changed(block);
    if (may_be_marked(block)) [[unlikely]]
        if (keep_recent(block)) return;
    coco_je_free(block);
}
std::size_t usable_bytes(const void* block) {
    return is_early(block) ? early_bytes(block) : coco_je_malloc_usable_size(block);
}

namespace {

std::size_t statistic(const char* name) {
    std::size_t value = 0, bytes = sizeof value;
    return coco_je_mallctl(name, &value, &bytes, nullptr, 0) == 0 ? value : 0;
}

// jemalloc's statistics are those of the last time that it was asked for new ones.
void renew_statistics() {
    std::uint64_t any = 1;
    coco_je_mallctl("epoch", nullptr, nullptr, &any, sizeof any);
}

std::uint64_t freed_bytes() {
    renew_statistics();
    return statistic(COCO_ALL_ARENAS("stats.arenas.", ".pdirty")) * statistic("arenas.page");
}

}  // namespace

AllocatorFigures allocator_figures() {
    const base::KeptErrno kept;
    AllocatorFigures figures{0, 0, freed_bytes()};
    figures.allocated_bytes = statistic("stats.allocated");
    figures.mapped_bytes = std::max(statistic("stats.mapped"), figures.allocated_bytes);
    return figures;
}

void purge() { coco_je_mallctl(COCO_ALL_ARENAS("arena.", ".purge"), nullptr, nullptr, nullptr, 0); }

bool trim() {
    const base::KeptErrno kept;
    drop_recent();
    coco_je_mallctl("thread.tcache.flush", nullptr, nullptr, nullptr, 0);
    std::uint64_t before = freed_bytes();
    purge();
    bool gave = freed_bytes() < before;
    announce_gone();
    return gave;
}

constinit thread_local const char* t_undivided = nullptr;

void stop_undivided(std::size_t bytes) {
    COCO_CHECK(t_undivided != nullptr, "a function that must not be left half done has a name");
    base::log_last(base::Text() << "out of memory, " << bytes << " bytes, in the midst of " << t_undivided
                                << ", where other ranks wait for this one");
    std::abort();
}

}  // namespace coco::heap
