// SPDX-License-Identifier: BSD-3-Clause
#include "heap/parts.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <mutex>

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

// A range of the heap, as parts: the first, and behind the last one.
struct Run {
    std::uint64_t begin, end;
    std::byte* address() const { return carvable().base + begin * kPartBytes; }
    std::uint64_t bytes() const { return (end - begin) * kPartBytes; }
};

bool is_heap(const void* address, std::uint64_t bytes, std::uint64_t& offset) {
    const Range heap = carvable();
    offset = reinterpret_cast<std::uint64_t>(address) - reinterpret_cast<std::uint64_t>(heap.base);
    return own().bytes != 0 && offset < heap.bytes && bytes <= heap.bytes - offset && bytes != 0;
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

// Calls act(part, pages of it in the range, its number) for each part of a range.
template <class Act>
void for_each_part(std::uint64_t offset, std::uint64_t bytes, Act act) {
    for (const std::uint64_t end = offset + bytes; offset < end;) {
        const std::uint64_t number = offset / kPartBytes;
        const std::uint64_t stop = std::min(end, (number + 1) * kPartBytes);
        act(g_parts[number], pages_in(stop - offset), number);
        offset = stop;
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

// Counts pages as used. Returns: the parts that were not used before; all lie side by side, as a range has no
// other ones within.
Run count_used(std::uint64_t offset, std::uint64_t bytes, Pages pages_for) {
    Run fresh{0, 0};
    for_each_part(offset, bytes, [&](Part& part, std::uint64_t pages, std::uint64_t number) {
        if (part.used == 0) fresh = {fresh.begin == fresh.end ? number : fresh.begin, number + 1};
        const auto there = static_cast<std::uint16_t>(std::min<std::uint64_t>(part.ahead, pages));
        part.used = static_cast<std::uint16_t>(part.used + pages);
        part.ahead = static_cast<std::uint16_t>(part.ahead - there);
        if (pages_for != Pages::records) g_used += pages;
        g_ahead -= there;
    });
    return fresh;
}

// Counts what is not used of these parts as there.
void count_ahead(Run parts) {
    for (std::uint64_t i = parts.begin; i < parts.end; ++i) {
        g_parts[i].ahead = static_cast<std::uint16_t>(pages_in(kPartBytes) - g_parts[i].used);
        g_ahead += g_parts[i].ahead;
    }
}

std::uint64_t unused_pages(Run parts) {
    std::uint64_t pages = 0;
    for (std::uint64_t i = parts.begin; i < parts.end; ++i) pages += pages_in(kPartBytes) - g_parts[i].used;
    return pages;
}

// A range with all of those parts that are used by nobody else.
struct Offsets {
    std::uint64_t begin, end;
};
Offsets with_whole_parts(std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t first = offset / kPartBytes, last = (offset + bytes - 1) / kPartBytes;
    Offsets wide{offset, offset + bytes};
    for_each_part(offset, bytes, [&](const Part& part, std::uint64_t pages, std::uint64_t number) {
        if (part.used != pages) return;
        if (number == first) wide.begin = number * kPartBytes;
        if (number == last) wide.end = (number + 1) * kPartBytes;
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
    std::uint64_t offset = 0;
    if (!is_heap(address, bytes, offset)) return;
    COCO_CHECK_DEAR(offset % os::page_bytes() == 0 && bytes % os::page_bytes() == 0,
                    "the allocator uses whole pages");
    Run fresh{};
    {
        const std::scoped_lock hold(g_parts_lock);
        if (!has_table()) return;
        fresh = count_used(offset, bytes, pages);
        if (fresh.begin == fresh.end) return;
        kernel::madvise(fresh.address(), fresh.bytes(), MADV_DODUMP);
        if (!wants_huge(pages) || !can_make_huge() || !may_be_ahead(unused_pages(fresh))) return;
        count_ahead(fresh);
    }
    // Not under the lock, as it takes some 0.3 ms for each.
    os::make_huge(fresh.address(), fresh.bytes());
}

bool end_use(void* address, std::uint64_t bytes) {
    std::uint64_t offset = 0;
    if (!is_heap(address, bytes, offset)) return false;
    COCO_CHECK_DEAR(offset % os::page_bytes() == 0 && bytes % os::page_bytes() == 0,
                    "the allocator uses whole pages");
    // Nobody begins to use a page of these parts meanwhile.
    const std::scoped_lock hold(g_parts_lock);
    if (!has_table()) return false;
    const Offsets wide = with_whole_parts(offset, bytes);
    if (!punch_shared(carvable().base + wide.begin, wide.end - wide.begin)) return false;
    for_each_part(offset, bytes, [](Part& part, std::uint64_t pages, std::uint64_t) {
        COCO_CHECK_DEAR(part.used >= pages, "pages that are not used any more were used");
        COCO_CHECK_DEAR(g_ahead >= part.ahead, "the pages that are there ahead are those of all parts");
        part.used = static_cast<std::uint16_t>(part.used - pages);
        g_used -= std::min(g_used, pages);  // it may have been a record
        if (part.used != 0) return;
        g_ahead -= part.ahead;
        part.ahead = 0;
    });
    const Run unused{(wide.begin + kPartBytes - 1) / kPartBytes, wide.end / kPartBytes};
    if (unused.begin < unused.end) kernel::madvise(unused.address(), unused.bytes(), MADV_DONTDUMP);
    return true;
}

}  // namespace coco::heap
