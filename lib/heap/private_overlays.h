// SPDX-License-Identifier: BSD-3-Clause
//
// What a program does to pages of private blocks (arenas.cc): another mapping in their place would get what
// the next block's owner writes, and pages without access would end it. So once a program has done either,
// each middle or large private block gets fresh pages when it is freed, as the C library unmaps such blocks.
// A block with a hole, where anybody's mapping may lie by then, is not used again. The segment's pages have a
// table of their own (overlays.h).
//
// Extents are told by arenas.cc and system.cc, changes by mapping_calls.cc; allocator.cc asks. Thread safety:
// any thread, and signal handlers: no lock. A forked child has a copy. Fails: no; extents beyond 1,024 are
// not watched, beyond 64 holes all private blocks count as having one.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coco::heap {

// The allocator has these addresses from now on.
void watch_private(const void* begin, std::uint64_t bytes);
// Notes what the program does to a range, if the allocator has any of it: maps something else, or takes
// access away; unmaps it.
void note_private_change(const void* address, std::uint64_t bytes);
void note_private_hole(const void* address, std::uint64_t bytes);
// Whether a private block may have changed pages.
bool is_private_changed(const void* block, std::size_t bytes);
// Makes the pages of a private block, whose bytes nobody needs any more, fit for the next one. Returns: false
// where they are not.
bool renew_private(void* block, std::size_t bytes);

}  // namespace coco::heap
