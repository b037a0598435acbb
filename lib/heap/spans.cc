// SPDX-License-Identifier: BSD-3-Clause
#include "heap/spans.h"

#include <algorithm>
#include <mutex>

#include "base/bits.h"
#include "base/check.h"
#include "base/lock.h"
#include "heap/own_segment.h"
#include "heap/segment.h"
#include "heap/segment_size.h"
#include "os/shared_memory.h"

namespace coco::heap {
namespace {

struct Span {
    std::uint64_t offset, bytes;
};

// Free spans by offset, never adjacent. jemalloc keeps what it frees and gives back only the trimmings of
// alignment, so the list stays short; should it ever be full, a span's address room is lost but not its
// memory.
constexpr int kMostFree = 4096;
constinit Span g_free[kMostFree] = {};
constinit int g_free_count = 0;
constinit std::uint64_t g_top = kFirstSpan;
constinit std::uint64_t g_carved = 0;
constinit base::Lock g_lock;

void erase(int at) {
    std::copy(g_free + at + 1, g_free + g_free_count, g_free + at);
    --g_free_count;
}

void add_free(std::uint64_t offset, std::uint64_t bytes) {
    Span* next =
        std::find_if(g_free, g_free + g_free_count, [&](const Span& s) { return s.offset > offset; });
    COCO_CHECK_DEAR(next == g_free || next[-1].offset + next[-1].bytes <= offset,
                    "a free span ends before the next one begins");
    COCO_CHECK_DEAR(next == g_free + g_free_count || offset + bytes <= next->offset,
                    "a free span ends before the next one begins");
    bool joins_last = next > g_free && next[-1].offset + next[-1].bytes == offset;
    bool joins_next = next < g_free + g_free_count && offset + bytes == next->offset;
    if (joins_last) {
        next[-1].bytes += bytes + (joins_next ? next->bytes : 0);
        if (joins_next) erase(static_cast<int>(next - g_free));
    } else if (joins_next) {
        *next = {offset, next->bytes + bytes};
    } else if (g_free_count < kMostFree) {
        std::copy_backward(next, g_free + g_free_count, g_free + g_free_count + 1);
        *next = {offset, bytes};
        ++g_free_count;
    }
}

std::uint64_t take_free(std::uint64_t bytes) {
    for (int i = 0; i < g_free_count; ++i) {
        Span& span = g_free[i];
        if (span.bytes < bytes) continue;
        std::uint64_t offset = span.offset;
        span = {span.offset + bytes, span.bytes - bytes};
        if (span.bytes == 0) erase(i);
        return offset;
    }
    return 0;
}

// A forked child has what was carved before, and no more.
std::uint64_t end_of_heap() { return own().bytes != 0 ? carvable().bytes : 0; }

// Large spans start on a huge page.
std::uint64_t take_top(std::uint64_t bytes) {
    std::uint64_t unit = bytes >= os::kHugePageBytes ? os::kHugePageBytes : span_unit();
    std::uint64_t offset = base::round_up(g_top, unit);
    std::uint64_t limit = end_of_heap();
    if (offset > limit || bytes > limit - offset || !reach_own(kHeap, offset + bytes)) return 0;
    if (offset > g_top) add_free(g_top, offset - g_top);
    g_top = offset + bytes;
    return offset;
}

}  // namespace

std::uint64_t take_span(std::uint64_t bytes) {
    COCO_CHECK(bytes != 0 && bytes % os::page_bytes() == 0, "a span is of whole pages");
    std::scoped_lock hold(g_lock);
    std::uint64_t offset = take_free(bytes);
    if (offset == 0) offset = take_top(bytes);
    if (offset == 0) return 0;
    g_carved += bytes;
    return offset;
}

void give_span(std::uint64_t offset, std::uint64_t bytes) {
    std::scoped_lock hold(g_lock);
    COCO_CHECK(bytes != 0 && bytes <= g_carved, "a span that is given back was taken");
    COCO_CHECK(offset >= kFirstSpan && offset + bytes <= g_top, "a span lies in what was carved");
    g_carved -= bytes;
    add_free(offset, bytes);
}

std::uint64_t spans_end() { return g_top; }

std::uint64_t carved_bytes() {
    const std::scoped_lock hold(g_lock);
    return g_carved;
}

void lock_spans() { g_lock.lock(); }
void unlock_spans() { g_lock.unlock(); }

}  // namespace coco::heap
