// SPDX-License-Identifier: BSD-3-Clause
#include "heap/parts.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/bits.h"
#include "base/check.h"
#include "base/kernel.h"
#include "heap/own_segment.h"
#include "heap/process_facts.h"
#include "heap/segment.h"
#include "os/cpu.h"
#include "os/shared_memory.h"

namespace coco::heap {

constinit base::Lock g_parts_lock;

namespace {

constexpr std::uint64_t kPartBytes = os::kHugePageBytes;

// In pages. ahead: there because the part is a huge page, and not used yet.
struct Part {
    std::uint16_t used, ahead;
};

// The table, made when the first pages are used, and the sums over all parts, in pages, without the
// allocator's own records. Guarded by the lock.
constinit Part* g_parts = nullptr;
constinit std::uint64_t g_used = 0, g_ahead = 0;

std::uint64_t pages_in(std::uint64_t bytes) { return bytes / os::page_bytes(); }

// A range of the heap, as offsets.
struct Run {
    std::uint64_t begin, end;
    std::byte* address() const { return carvable().base + begin; }
    std::uint64_t bytes() const { return end - begin; }
};

// What a range has of the heap: nothing, or all.
Run run_of(const void* address, std::uint64_t bytes) {
    const Range heap = carvable();
    const std::uint64_t offset =
        reinterpret_cast<std::uint64_t>(address) - reinterpret_cast<std::uint64_t>(heap.base);
    if (own().bytes == 0 || offset >= heap.bytes || bytes > heap.bytes - offset) return {0, 0};
    COCO_CHECK_DEAR(offset % os::page_bytes() == 0 && bytes % os::page_bytes() == 0,
                    "the allocator uses whole pages");
    return {offset, offset + bytes};
}

// Returns: false where there is no memory for the table, from the first pages on.
bool has_table() {
    static constinit bool is_asked_for = false;  // guarded by the lock
    if (g_parts != nullptr || is_asked_for) return g_parts != nullptr;
    is_asked_for = true;
    const Range heap = carvable();
    COCO_CHECK(reinterpret_cast<std::uint64_t>(heap.base) % kPartBytes == 0 && heap.bytes % kPartBytes == 0,
               "a heap is of whole parts");
    void* table = kernel::mmap(nullptr, heap.bytes / kPartBytes * sizeof *g_parts, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED) return false;
    g_parts = static_cast<Part*>(table);
    return true;
}

// Calls act(part, pages of it in the run, where all of it lies) for each part of a run.
template <class Act>
void for_each_part(const Run& run, Act act) {
    for (std::uint64_t at = run.begin; at < run.end;) {
        const std::uint64_t number = at / kPartBytes;
        const Run whole{number * kPartBytes, (number + 1) * kPartBytes};
        const std::uint64_t stop = std::min(run.end, whole.end);
        act(g_parts[number], pages_in(stop - at), whole);
        at = stop;
    }
}

// Whether so many pages more may be there before they are used: an eighth of the used ones, and 4 MiB. The
// program may not touch all that it allocates: half of the share of memory is filled at most.
bool may_be_ahead(std::uint64_t pages) {
    return g_ahead + pages <= g_used / 8 + pages_in(4u << 20) && g_used <= pages_in(memory_share_bytes() / 2);
}

// A process that allocates little has several arenas, of which it uses a few pages each.
constexpr std::uint64_t kSmallHeapBytes = 8u << 20;

bool wants_huge(Pages pages) {
    return pages == Pages::huge || (pages == Pages::huge_later && g_used >= pages_in(kSmallHeapBytes));
}

// Counts pages as used. Returns: the parts that were not used before; all lie side by side, as a run has no
// other ones within.
Run count_used(const Run& run, Pages pages_for) {
    Run fresh{0, 0};
    for_each_part(run, [&](Part& part, std::uint64_t pages, const Run& whole) {
        if (part.used == 0) fresh = {fresh.end == 0 ? whole.begin : fresh.begin, whole.end};
        const auto there = static_cast<std::uint16_t>(std::min<std::uint64_t>(part.ahead, pages));
        part.used = static_cast<std::uint16_t>(part.used + pages);
        part.ahead = static_cast<std::uint16_t>(part.ahead - there);
        if (pages_for != Pages::records) g_used += pages;
        g_ahead -= there;
    });
    return fresh;
}

// Counts what is not used of these parts as there, if so much may be. Returns: whether it may.
bool count_ahead(const Run& parts) {
    std::uint64_t unused = 0;
    for_each_part(parts, [&](const Part& part, std::uint64_t all, const Run&) { unused += all - part.used; });
    if (!may_be_ahead(unused)) return false;
    for_each_part(parts, [](Part& part, std::uint64_t all, const Run&) {
        part.ahead = static_cast<std::uint16_t>(all - part.used);
    });
    g_ahead += unused;
    return true;
}

// A run with all of those parts that are used by nobody else.
Run with_whole_parts(const Run& run) {
    Run wide = run;
    for_each_part(run, [&](const Part& part, std::uint64_t pages, const Run& whole) {
        if (part.used == pages) wide = {std::min(wide.begin, whole.begin), std::max(wide.end, whole.end)};
    });
    return wide;
}

}  // namespace

bool can_make_huge() {
    enum { kUnknown, kYes, kNo };
    static constinit std::atomic<int> answer{kUnknown};  // relaxed: nothing else goes with the answer
    if (own().bytes == 0) return false;
    if (answer.load(std::memory_order_relaxed) == kUnknown)
        answer.store(!must_reserve_pages() && os::can_collapse(own().base) ? kYes : kNo,
                     std::memory_order_relaxed);
    return answer.load(std::memory_order_relaxed) == kYes;
}

void begin_use(void* address, std::uint64_t bytes, Pages pages) {
    const Run run = run_of(address, bytes);
    if (run.bytes() == 0) return;
    Run fresh{};
    {
        const std::scoped_lock hold(g_parts_lock);
        if (!has_table()) return;
        fresh = count_used(run, pages);
        if (fresh.bytes() == 0) return;
        kernel::madvise(fresh.address(), fresh.bytes(), MADV_DODUMP);
        if (!wants_huge(pages) || !can_make_huge() || !count_ahead(fresh)) return;
    }
    // Not under the lock, as it takes some 0.3 ms for each.
    os::make_huge(fresh.address(), fresh.bytes());
}

bool end_use(void* address, std::uint64_t bytes) {
    const Run run = run_of(address, bytes);
    if (run.bytes() == 0) return false;
    // Nobody begins to use a page of these parts meanwhile.
    const std::scoped_lock hold(g_parts_lock);
    if (!has_table()) return false;
    const Run wide = with_whole_parts(run);
    if (!punch_shared(wide.address(), wide.bytes())) return false;
    for_each_part(run, [](Part& part, std::uint64_t pages, const Run&) {
        COCO_CHECK_DEAR(part.used >= pages, "pages that are not used any more were used");
        COCO_CHECK_DEAR(g_ahead >= part.ahead, "the pages that are there ahead are those of all parts");
        part.used = static_cast<std::uint16_t>(part.used - pages);
        g_used -= std::min(g_used, pages);  // it may have been a record
        if (part.used != 0) return;
        g_ahead -= part.ahead;
        part.ahead = 0;
    });
    const Run unused{base::round_up(wide.begin, kPartBytes), wide.end / kPartBytes * kPartBytes};
    if (unused.begin < unused.end) kernel::madvise(unused.address(), unused.bytes(), MADV_DONTDUMP);
    return true;
}

}  // namespace coco::heap
