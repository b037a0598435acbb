// SPDX-License-Identifier: BSD-3-Clause
#include "heap/arenas.h"

#include <jemalloc/jemalloc.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <string_view>

#include "base/bits.h"
#include "base/env.h"
#include "base/kernel.h"
#include "base/lock.h"
#include "base/text.h"
#include "heap/gone.h"
#include "heap/own_segment.h"
#include "heap/parts.h"
#include "heap/segment.h"
#include "heap/system.h"
#include "os/cpu.h"
#include "os/process.h"
#include "os/shared_memory.h"

#pragma GCC visibility push(hidden)
extern "C" int coco_je_mallctl(const char* name, void* old, std::size_t* old_bytes, void* value,
                               std::size_t value_bytes);
#pragma GCC visibility pop

namespace coco::heap {
namespace {

constexpr int kArenas = 4;
constexpr int kOpen = PROT_READ | PROT_WRITE;

// Relaxed: bounds that may be passed by as much as threads allocate at once.
constinit std::atomic<std::uint64_t> g_middle_bytes{0};   // address space of the middle arena on the segment
constinit std::atomic<std::uint64_t> g_private_bytes{0};  // private pages in use

std::byte* at(void* address, std::size_t offset = 0) { return static_cast<std::byte*>(address) + offset; }

// Private pages where none are used, which read as zeros. Huge ones are asked for while all together fit into half of the
// share: a program that leaves holes in its memory would fill it otherwise.
bool begin_private(std::byte* begin, std::size_t bytes) {
    if (kernel::mmap(begin, bytes, kOpen, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return false;
    const std::uint64_t before = g_private_bytes.fetch_add(bytes, std::memory_order_relaxed);
    if (bytes >= os::kHugePageBytes && before + bytes <= memory_share_bytes() / 2)
        kernel::madvise(begin, bytes, MADV_HUGEPAGE);
    return true;
}

// Address space stays: it is charged for nothing.
bool end_private(std::byte* begin, std::size_t bytes) {
    if (kernel::mmap(begin, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
                     0) == MAP_FAILED)
        return false;
    note_gone(begin, bytes);
    g_private_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    return true;
}

std::byte* reserve_private(std::size_t bytes, std::size_t alignment) {
    void* mapped = kernel::mmap(nullptr, bytes + alignment, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    const auto first = reinterpret_cast<std::uint64_t>(mapped);
    const std::uint64_t skipped = base::round_up(first, alignment) - first;
    if (skipped != 0) kernel::munmap(mapped, skipped);
    kernel::munmap(at(mapped, skipped + bytes), alignment - skipped);
    return at(mapped, skipped);
}

// jemalloc knows what it has of the address space: it never asks for a certain address in vain. Blocks begin to be used by
// commit(), its own records at once.
void* alloc_private(extent_hooks_t*, void* wanted, std::size_t bytes, std::size_t alignment, bool* zero,
                    bool* commit, unsigned) {
    std::byte* begin = wanted == nullptr ? reserve_private(bytes, alignment) : nullptr;
    if (begin == nullptr) return nullptr;
    if (*commit && !begin_private(begin, bytes)) {
        kernel::munmap(begin, bytes);
        return nullptr;
    }
    *zero = true;
    return begin;
}

void* alloc_shared(extent_hooks_t* hooks, void* wanted, std::size_t bytes, std::size_t alignment, bool* zero,
                   bool* commit, unsigned arena) {
    std::byte* begin = wanted == nullptr ? carve(bytes, alignment) : nullptr;
    if (begin == nullptr) return alloc_private(hooks, wanted, bytes, alignment, zero, commit, arena);
    if (*commit) begin_use(begin, bytes, Pages::as_touched);
    *zero = true;
    return begin;
}

// A program that leaves holes in its memory shall not be filled up by huge pages.
void* alloc_middle(extent_hooks_t* hooks, void* wanted, std::size_t bytes, std::size_t alignment, bool* zero,
                   bool* commit, unsigned arena) {
    const bool fits = g_middle_bytes.load(std::memory_order_relaxed) + bytes <= memory_share_bytes() / 8;
    void* begin = (fits ? alloc_shared : alloc_private)(hooks, wanted, bytes, alignment, zero, commit, arena);
    if (begin != nullptr && is_carvable(begin)) g_middle_bytes.fetch_add(bytes, std::memory_order_relaxed);
    return begin;
}

bool commit(extent_hooks_t*, void* address, std::size_t, std::size_t offset, std::size_t bytes, unsigned) {
    std::byte* begin = at(address, offset);
    const int saved = errno;
    bool done = true;
    if (is_carvable(begin))
        begin_use(begin, bytes, Pages::huge);
    else
        done = begin_private(begin, bytes);
    if (done) errno = saved;
    return !done;
}

bool decommit(extent_hooks_t*, void* address, std::size_t, std::size_t offset, std::size_t bytes, unsigned) {
    std::byte* begin = at(address, offset);
    const int saved = errno;
    const bool done = is_carvable(begin) ? end_use(begin, bytes) : end_private(begin, bytes);
    errno = saved;
    return !done;
}

bool purge(extent_hooks_t*, void* address, std::size_t, std::size_t offset, std::size_t bytes, unsigned) {
    const int saved = errno;
    const bool failed = give_up_pages(at(address, offset), bytes) != 0;
    errno = saved;
    return failed;
}

bool split(extent_hooks_t*, void*, std::size_t, std::size_t, std::size_t, bool, unsigned) { return false; }
bool merge(extent_hooks_t*, void*, std::size_t, void*, std::size_t, bool, unsigned) { return false; }

// No dalloc: jemalloc keeps the address space, as it does in its other arenas.
extent_hooks_t g_private = {alloc_private, nullptr, nullptr, commit, decommit, nullptr, purge, split, merge};
extent_hooks_t g_shared = {alloc_shared, nullptr, nullptr, commit, decommit, nullptr, purge, split, merge};
extent_hooks_t g_middle = {alloc_middle, nullptr, nullptr, commit, decommit, nullptr, purge, split, merge};

extent_hooks_t* hooks_of(Arena which) {
    if (!is_on_segment(which)) return &g_private;
    return which == Arena::middle && mode() != base::HeapMode::shared ? &g_middle : &g_shared;
}

void set(unsigned arena, std::string_view setting, std::int64_t value) {
    base::Text name;
    name << "arena." << arena << '.' << setting << '\0';
    coco_je_mallctl(name.view().data(), nullptr, nullptr, &value, sizeof value);
}

unsigned make_arena(Arena which) {
    const int saved = errno;
    extent_hooks_t* hooks = hooks_of(which);
    unsigned made = 0;
    std::size_t bytes = sizeof made;
    if (coco_je_mallctl("arenas.create", &made, &bytes, &hooks, sizeof(void*)) != 0) made = 0;
    if (made != 0 && which == Arena::large) set(made, "dirty_decay_ms", 0);
    if (made != 0 && which == Arena::libc) set(made, "dirty_decay_ms", -1);  // never: it is little
    // Free neighbours of together so many bytes go back at once.
    if (made != 0 && which == Arena::middle) set(made, "oversize_threshold", 256 << 20);
    errno = saved;
    return made;
}

}  // namespace

std::uint64_t memory_share_bytes() {
    static constinit std::atomic<std::uint64_t> share{0};  // relaxed: nothing else goes with it
    if (share.load(std::memory_order_relaxed) == 0) {
        struct sysinfo facts {};
        const bool known = kernel::sysinfo(&facts) == 0;
        share.store(known ? facts.totalram * facts.mem_unit / os::node_ranks() : 1,
                    std::memory_order_relaxed);
    }
    return share.load(std::memory_order_relaxed);
}

base::HeapMode mode() {
    base::HeapMode mode = base::HeapMode::adaptive;
    base::parse_heap_mode(base::env("COCO_HEAP"), mode);
    return mode;
}

bool is_on_segment(Arena which) {
    if (which == Arena::libc || own().bytes == 0) return false;
    if (which == Arena::shared || mode() == base::HeapMode::shared) return true;
    return which == Arena::middle && can_make_huge();
}

int arena_flags(Arena which) {
    // Their numbers; 0: not made yet. Relaxed: jemalloc itself orders what it reads of an arena.
    static constinit std::atomic<unsigned> numbers[kArenas] = {};
    static constinit base::Lock making;
    std::atomic<unsigned>& number = numbers[static_cast<int>(which)];
    unsigned arena = number.load(std::memory_order_relaxed);
    if (arena == 0) {
        const std::scoped_lock hold(making);
        arena = number.load(std::memory_order_relaxed);
        if (arena == 0) number.store(arena = make_arena(which), std::memory_order_relaxed);
    }
    return arena == 0 ? 0 : static_cast<int>(MALLOCX_ARENA(arena)) | MALLOCX_TCACHE_NONE;
}

}  // namespace coco::heap
