// SPDX-License-Identifier: BSD-3-Clause
#include "heap/malloc_family.h"

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/bits.h"
#include "base/check.h"
#include "base/kept_errno.h"
#include "base/lock.h"
#include "base/log.h"
#include "heap/overlays.h"
#include "heap/own_segment.h"
#include "heap/process_facts.h"
#include "heap/segment.h"
#include "os/process.h"
#include "os/symbols.h"

namespace coco::heap {

// Relaxed: where the family is ours nothing goes with it (own() orders the segment), and a thread that reads
// false goes on to g_decided.
constinit std::atomic<bool> g_malloc_family_is_ours{false};
alignas(16) constinit std::byte g_early[kEarlyBytes] = {};

namespace {

constexpr std::size_t kEarlyAlignment = 16;
constinit std::size_t g_early_used = 0;  // by the one thread that decides

constinit std::atomic<bool> g_decided{false};
constinit base::Lock g_deciding;
constinit thread_local bool t_deciding = false;

// The next definitions after ours; null until the decision has fallen.
constinit Family g_next{};

// A block's size stands before it.
void* early_malloc(std::size_t bytes) {
    const std::size_t whole = kEarlyAlignment + base::round_up(std::min(bytes, kEarlyBytes), kEarlyAlignment);
    if (whole > kEarlyBytes - g_early_used) {
        errno = ENOMEM;
        return nullptr;
    }
    std::byte* block = g_early + g_early_used + kEarlyAlignment;
    *reinterpret_cast<std::size_t*>(block - kEarlyAlignment) = bytes;
    g_early_used += whole;
    return block;
}

void* early_calloc(std::size_t count, std::size_t bytes_each) {
    std::size_t bytes = 0;
    return early_malloc(__builtin_mul_overflow(count, bytes_each, &bytes) ? SIZE_MAX : bytes);
}

void free_any(void* block) {
    if (!is_early(block) && g_next.free != nullptr) g_next.free(block);
}

std::size_t usable_of_any(void* block) {
    if (is_early(block)) return early_bytes(block);
    return g_next.malloc_usable_size != nullptr ? g_next.malloc_usable_size(block) : 0;
}

void* realloc_any(void* block, std::size_t bytes) {
    if (block != nullptr && !is_early(block)) return g_next.realloc(block, bytes);
    void* moved = std::malloc(bytes);  // whoever serves it now
    if (moved != nullptr && block != nullptr) std::memcpy(moved, block, std::min(bytes, early_bytes(block)));
    return moved;
}

// `next` with functions that also take early blocks.
constexpr Family allowing_early(Family next) {
    next.realloc = realloc_any;
    next.free = free_any;
    next.malloc_usable_size = usable_of_any;
    return next;
}

constexpr Family early_family() {
    Family family{};
    family.malloc = early_malloc;
    family.calloc = early_calloc;
    return allowing_early(family);
}

constinit Family g_others = early_family();

bool doors_are_reached() {
    for (const char* name : {"malloc", "free", "calloc", "realloc"})
        if (os::definer(name) != os::own_object()) return false;
    return true;
}

bool next_is_libcs() {
    os::Object next = os::definer("malloc", os::own_object());
    return next != nullptr && next == os::definer("gnu_get_libc_version");
}

template <class Function>
void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(next_definition(name));
}

void find_others() {
    Family found{};
    find(found.malloc, "malloc");
    find(found.calloc, "calloc");
    find(found.realloc, "realloc");
    find(found.free, "free");
    find(found.reallocarray, "reallocarray");
    find(found.memalign, "memalign");
    find(found.aligned_alloc, "aligned_alloc");
    find(found.posix_memalign, "posix_memalign");
    find(found.valloc, "valloc");
    find(found.pvalloc, "pvalloc");
    find(found.malloc_usable_size, "malloc_usable_size");
    find(found.free_sized, "free_sized");
    find(found.free_aligned_sized, "free_aligned_sized");
    find(found.mallinfo, "mallinfo");
    find(found.mallinfo2, "mallinfo2");
    find(found.malloc_stats, "malloc_stats");
    find(found.malloc_info, "malloc_info");
    find(found.malloc_trim, "malloc_trim");
    find(found.mallopt, "mallopt");
    g_next = found;
    g_others = allowing_early(found);
}

void report(bool ours) {
    if (os::is_under_valgrind()) COCO_LOG(info, "under valgrind: no shared heap");
    if (wants_shared_heap() && !ours)
        COCO_LOG(info, "another allocator serves malloc: its buffers are private");
}

void decide() {
    const base::KeptErrno kept;
    t_deciding = true;
    bool ours =
        wants_shared_heap() && mode() != base::HeapMode::off && doors_are_reached() && next_is_libcs();
    if (ours) {
        own();
        // Which other libraries' wrappers have allocated in the midst of it.
        if (g_early_used != 0) g_changed.store(true, std::memory_order_relaxed);
    } else {
        find_others();
    }
    report(ours);
    g_malloc_family_is_ours.store(ours, std::memory_order_relaxed);
    t_deciding = false;
}

}  // namespace

bool decide_malloc_family() {
    if (!g_decided.load(std::memory_order_acquire)) {
        if (t_deciding) return false;
        std::scoped_lock hold(g_deciding);
        if (!g_decided.load(std::memory_order_relaxed)) decide();
        g_decided.store(true,
                        std::memory_order_release);  // pairs with the acquire above: g_others is written
    }
    return g_malloc_family_is_ours.load(std::memory_order_relaxed);
}

void come_before_segment() { decide_malloc_family(); }

std::size_t early_bytes(const void* block) {
    COCO_CHECK(is_early(block), "the size of an early block stands before it");
    return *reinterpret_cast<const std::size_t*>(static_cast<const std::byte*>(block) - kEarlyAlignment);
}

bool is_deciding_malloc_family() { return t_deciding; }

const Family& others() {
    COCO_CHECK_DEAR(!g_malloc_family_is_ours.load(std::memory_order_relaxed),
                    "others serve what is not ours");
    return g_others;
}

// A dlsym that fails would leave its message to the program, and allocate for it.
void* next_definition(const char* name) {
    return os::definer(name, os::own_object()) != nullptr ? dlsym(RTLD_NEXT, name) : nullptr;
}

}  // namespace coco::heap
