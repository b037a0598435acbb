// SPDX-License-Identifier: BSD-3-Clause
//
// The pages of the own heap, by parts of the size of a huge page: how many of each the allocator uses. A part
// that it begins to use is made a huge page, within a bound on the pages that are there before they are used.
// Core dumps have the parts in use alone: whoever reads a page of shared memory makes it, debuggers and the
// kernel's own dumps too. A process without memory for the table of parts uses its heap uncounted.
//
// Called by system.cc and arenas.cc, when the allocator begins or ceases to use pages (commits and decommits
// them). Thread safety: any thread, one lock. A forked child's heap is private memory, of which nothing is
// counted. No malloc. Fails: by return value.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/lock.h"

namespace coco::heap {

// Whether parts are made huge pages at all in this process: the system allows it, and the kernel can.
bool can_make_huge();

enum class Pages {
    huge,        // for blocks that will be filled
    huge_later,  // once the heap is no small one any more
    as_touched,
    records  // of the allocator's own, as they are touched; bounds do not count them
};
// The allocator begins to use pages, which read as zeros. Page bounds only. What is not the heap's is passed
// over.
void begin_use(void* address, std::uint64_t bytes, Pages pages);
// It ceases to use them, and they are given back, with all others of parts that are not used any more.
// Returns: false where that fails; they are as they were then, and in use.
bool end_use(void* address, std::uint64_t bytes);

extern constinit base::Lock g_parts_lock;  // fork.cc holds it around a fork

}  // namespace coco::heap
