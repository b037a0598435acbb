// SPDX-License-Identifier: BSD-3-Clause
#include "heap/spans.h"

#include <algorithm>
#include <bit>
#include <mutex>

#include "base/bits.h"
#include "base/check.h"
#include "heap/own_segment.h"
#include "heap/segment.h"
#include "heap/segment_size.h"
#include "os/shared_memory.h"

namespace coco::heap {

constinit base::Lock g_spans_lock;

namespace {

constinit std::uint64_t g_top = kFirstSpan;

// A forked child has what was carved before, and no more.
std::uint64_t end_of_heap() { return own().bytes != 0 ? carvable().bytes : 0; }

}  // namespace

// Large spans start on a huge page. What is skipped for that is lost.
std::uint64_t take_span(std::uint64_t bytes, std::uint64_t alignment) {
    COCO_CHECK(bytes != 0 && bytes % os::page_bytes() == 0, "a span is of whole pages");
    COCO_CHECK(std::has_single_bit(alignment), "a span is aligned to a power of two");
    const std::uint64_t natural = bytes >= os::kHugePageBytes ? os::kHugePageBytes : span_unit();
    const std::scoped_lock hold(g_spans_lock);
    const auto base = reinterpret_cast<std::uint64_t>(carvable().base);
    const std::uint64_t offset = base::round_up(base + g_top, std::max(natural, alignment)) - base;
    const std::uint64_t limit = end_of_heap();
    if (offset > limit || bytes > limit - offset || !reach_own(kHeap, offset + bytes)) return 0;
    g_top = offset + bytes;
    return offset;
}

void give_span(std::uint64_t offset, std::uint64_t bytes) {
    const std::scoped_lock hold(g_spans_lock);
    COCO_CHECK(bytes != 0 && offset >= kFirstSpan && offset + bytes <= g_top,
               "a span lies in what was carved");
    if (offset + bytes == g_top) g_top = offset;
}

std::uint64_t spans_end() { return g_top; }

}  // namespace coco::heap
