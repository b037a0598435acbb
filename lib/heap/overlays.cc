// SPDX-License-Identifier: BSD-3-Clause
#include "heap/overlays.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>

#include "base/bits.h"
#include "base/check.h"
#include "base/index.h"
#include "base/kept_errno.h"
#include "base/kernel.h"
#include "heap/block_sizes.h"
#include "heap/gone.h"
#include "os/cpu.h"

namespace coco::heap {

constinit std::atomic<bool> g_changed{false};

namespace {

using State = std::atomic<Changes>;

// g_bytes is stored last (release) and read first (acquire): a thread that sees that there is a segment sees
// where it is, and its table.
constinit std::atomic<std::uint64_t> g_base{0}, g_bytes{0};
constinit State* g_states = nullptr;
// The pages that were ever noted lie in [g_low, g_high). The notes are read relaxed: a thread that knows of a
// change by the thread that made it has the notes by the same way, and one that does not could as well have
// looked before it.
constinit std::atomic<std::uint64_t> g_low{UINT64_MAX}, g_high{0};

struct Pages {
    std::uint64_t begin, end;
};

std::uint64_t number(const void* address) { return reinterpret_cast<std::uint64_t>(address); }
std::uint64_t first_address() { return g_base.load(std::memory_order_relaxed); }
std::uint64_t segment_bytes() { return g_bytes.load(std::memory_order_acquire); }  // watch_pages()

std::byte* address_of(std::uint64_t page) {
    return reinterpret_cast<std::byte*>(first_address() + page * os::page_bytes());
}

// The pages of the segment that a range of addresses touches.
Pages pages_of(const void* address, std::size_t bytes) {
    if (!touches_segment(address, bytes)) return {0, 0};
    std::uint64_t bytes_of_all = segment_bytes(), base = first_address(), from = number(address);
    std::uint64_t skipped = from < base ? base - from : 0;  // less than bytes
    std::uint64_t begin = from < base ? 0 : from - base;
    std::uint64_t end = begin + std::min<std::uint64_t>(bytes - skipped, bytes_of_all - begin);
    return {begin / os::page_bytes(), (end + os::page_bytes() - 1) / os::page_bytes()};
}

void widen(const Pages& pages) {
    std::uint64_t low = g_low.load(), high = g_high.load();
    while (pages.begin < low && !g_low.compare_exchange_weak(low, pages.begin)) {
    }
    while (pages.end > high && !g_high.compare_exchange_weak(high, pages.end)) {
    }
}

Changes state(std::uint64_t page) {
    COCO_CHECK_DEAR(g_states != nullptr && page * os::page_bytes() < segment_bytes(),
                    "a page with a state is one of the segment's");
    return g_states[page].load(std::memory_order_relaxed);
}

// Our mlockall leaves mappings of this name alone (lock_all.cc), where the kernel has such names.
void name_table(void* table, std::uint64_t bytes) {
#ifdef PR_SET_VMA
    kernel::call(SYS_prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME, reinterpret_cast<long>(table),
                 static_cast<long>(bytes), reinterpret_cast<long>("coco-pages"));
#else
    (void)table, (void)bytes;
#endif
}

}  // namespace

bool watch_pages(std::byte* base, std::uint64_t bytes) {
    COCO_CHECK(number(base) % os::page_bytes() == 0 && bytes % os::page_bytes() == 0,
               "a segment is of whole pages");
    std::uint64_t pages = bytes / os::page_bytes();
    void* table = kernel::mmap(nullptr, pages, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED) return false;
    name_table(table, pages);
    g_states = static_cast<State*>(table);
    g_base.store(number(base), std::memory_order_relaxed);
    g_bytes.store(bytes, std::memory_order_release);  // pairs with segment_bytes()
    return true;
}

bool touches_segment(const void* address, std::size_t bytes) {
    std::uint64_t all = segment_bytes(), base = first_address(), from = number(address);
    return from - base < all ? bytes != 0 : base - from < bytes && all != 0;
}

bool is_changed(const void* address, std::size_t bytes, Changes changes) {
    if (!anything_changed()) return false;
    Pages pages = pages_of(address, bytes);
    std::uint64_t end = std::min(pages.end, g_high.load(std::memory_order_relaxed));
    for (std::uint64_t page = std::max(pages.begin, g_low.load(std::memory_order_relaxed)); page < end;
         ++page)
        if ((state(page) & changes) != 0) return true;
    return false;
}

namespace {

// Of the segment's pages. Returns: whether none of them was noted before.
bool note(const void* address, std::size_t bytes, Changes change) {
    COCO_CHECK_DEAR((change & kAnyChange) != 0, "a change that is noted is one of those that there are");
    const Pages pages = pages_of(address, bytes);
    if (pages.begin == pages.end) return true;
    widen(pages);
    g_changed.store(true);
    Changes before = 0;
    for (std::uint64_t page = pages.begin; page < pages.end; ++page)
        before |= (change & kShut) != 0 ? g_states[page].fetch_or(change) : g_states[page].exchange(change);
    return before == 0;
}

void forget(const void* address, std::size_t bytes, Changes changes) {
    if (!anything_changed()) return;
    const Pages pages = pages_of(address, bytes);
    for (std::uint64_t page = pages.begin; page < pages.end; ++page)
        if (state(page) != 0) g_states[page].fetch_and(static_cast<Changes>(~changes));
}

// Ranges that are only ever added. The begin of one is stored last (release) and read first (acquire); 0: not
// yet.
template <std::uint32_t kMost>
class Ranges {
  public:
    void add(const void* begin, std::uint64_t bytes) {
        const std::uint32_t slot = taken_.fetch_add(1, std::memory_order_relaxed);
        if (slot >= kMost) return;
        const auto from = reinterpret_cast<std::uint64_t>(begin);
        ends_[slot].store(from + bytes, std::memory_order_relaxed);
        begins_[slot].store(from, std::memory_order_release);  // pairs with has()
    }
    bool is_full() const { return taken_.load(std::memory_order_relaxed) > kMost; }
    bool has(const void* address, std::uint64_t bytes) const {
        const std::uint32_t taken = std::min(taken_.load(std::memory_order_relaxed), kMost);
        const auto from = reinterpret_cast<std::uint64_t>(address);
        for (std::uint32_t i = 0; i < taken; ++i) {
            const std::uint64_t begin = begins_[i].load(std::memory_order_acquire);
            if (begin < from + bytes && from < ends_[i].load(std::memory_order_relaxed) && begin != 0)
                return true;
        }
        return false;
    }

  private:
    std::atomic<std::uint32_t> taken_{0};
    std::atomic<std::uint64_t> begins_[kMost] = {}, ends_[kMost] = {};
};

constinit Ranges<1024> g_extents;
constinit Ranges<64> g_holes;
// Of private memory, other than holes. Relaxed: whoever frees a block knows what was done to it.
constinit std::atomic<bool> g_private_changed{false};

bool has_hole(const void* block, std::size_t bytes) { return g_holes.is_full() || g_holes.has(block, bytes); }

// Smaller blocks share pages, which no program changes and lives, with the C library's malloc either.
bool is_renewed(std::size_t bytes) {
    return bytes >= kMiddle && g_private_changed.load(std::memory_order_relaxed);
}

void note_private(const void* address, std::size_t bytes) {
    if (!g_extents.has(address, bytes)) return;
    g_private_changed.store(true, std::memory_order_relaxed);
    g_changed.store(true);
}

}  // namespace

// Addresses that were given back, and come again, are watched already.
void watch_private(const void* begin, std::uint64_t bytes) {
    COCO_CHECK_DEAR(begin != nullptr && bytes != 0, "what is watched has addresses");
    const auto* last = static_cast<const std::byte*>(begin) + bytes - 1;
    if (!g_extents.has(begin, 1) || !g_extents.has(last, 1)) g_extents.add(begin, bytes);
}

bool is_private_changed(const void* block, std::size_t bytes) {
    return has_hole(block, bytes) || is_renewed(bytes);
}

bool note_replaced(const void* address, std::size_t bytes) {
    note_private(address, bytes);
    return note(address, bytes, kGone);
}

void forget_replaced(const void* address, std::size_t bytes) { forget(address, bytes, kGone); }

bool note_unmapped(const void* address, std::size_t bytes) { return note(address, bytes, kGone); }

void note_hole(const void* address, std::size_t bytes) {
    note(address, bytes, kGone);
    if (!g_extents.has(address, bytes)) return;
    g_holes.add(address, bytes);
    g_changed.store(true);
}

void note_protection(const void* address, std::size_t bytes, int protection, bool done) {
    constexpr int kOpen = PROT_READ | PROT_WRITE;
    if ((protection & kOpen) != kOpen) note_private(address, bytes);
    if (!done) return;
    forget(address, bytes, kShut | kReadable);
    if ((protection & kOpen) == kOpen) return;
    note(address, bytes, (protection & PROT_READ) != 0 ? kShut | kReadable : kShut);
}

bool open_pages(const void* block, std::size_t bytes) {
    const std::byte* end = static_cast<const std::byte*>(block) + bytes;
    for (PageRun run = run_at(block, end); run.begin != run.end; run = run_at(run.end, end)) {
        if ((run.changes & kShut) == 0) continue;
        const auto run_bytes = base::index(run.end - run.begin);
        if (kernel::mprotect(run.begin, run_bytes, PROT_READ | PROT_WRITE) != 0) return false;
        forget(run.begin, run_bytes, kShut | kReadable);
    }
    return true;
}

bool renew_private(void* block, std::size_t bytes) {
    if (has_hole(block, bytes)) return false;
    if (!is_renewed(bytes)) return true;
    const base::KeptErrno kept;
    bytes = base::round_up(bytes, os::page_bytes());
    const bool done = kernel::mmap(block, bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == block;
    note_gone(block, bytes);
    return done;
}

PageRun run_at(const void* from, const void* end) {
    if (number(from) >= number(end)) return {nullptr, nullptr, 0};
    Pages pages = pages_of(from, number(end) - number(from));
    if (pages.begin == pages.end) return {nullptr, nullptr, 0};
    Changes changes = state(pages.begin);
    std::uint64_t noted_end = std::min(pages.end, g_high.load(std::memory_order_relaxed));
    std::uint64_t stop =
        std::max(pages.begin + 1, std::min(noted_end, g_low.load(std::memory_order_relaxed)));
    while (stop < noted_end && state(stop) == changes) ++stop;
    if (stop >= noted_end && changes == 0) stop = pages.end;
    return {address_of(pages.begin), address_of(stop), changes};
}

}  // namespace coco::heap
