// SPDX-License-Identifier: BSD-3-Clause
//
// Which parts of the own segment the allocator has: spans, carved from a growing top and from freed spans.
// Used by system.cc (the allocator's mmap) and fork.cc. Its memory is static. Thread safety: any thread, one
// lock.
#pragma once
#include <cstdint>

#include "heap/heap.h"

namespace coco::heap {

// First byte that may be carved; below it is the segment's header.
constexpr std::uint64_t kFirstSpan = 2u << 20;

// Takes a span; page sizes only. Returns: its offset in the own segment, 0 when there is no room.
std::uint64_t take_span(std::uint64_t bytes);
// Gives a span back, whole or in part. Its pages must have been given up already.
void give_span(std::uint64_t offset, std::uint64_t bytes);
// Counts memory that had to come from elsewhere.
void count_private(std::int64_t bytes);
// End of all that was ever carved.
std::uint64_t spans_end();
void fill_span_figures(HeapFigures& figures);

// Around fork: no other thread is within these functions.
void lock_spans();
void unlock_spans();

}  // namespace coco::heap
