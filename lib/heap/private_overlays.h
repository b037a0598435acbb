// SPDX-License-Identifier: BSD-3-Clause
//
// What a program maps over private memory of the allocator's (arenas.cc), or unmaps of it: such a block is not used again, as the
// next one there would write to the program's file. The segment's pages have a table of their own (overlays.h).
//
// Extents are told by arenas.cc, changes by mapping_calls.cc; allocator.cc asks. Thread safety: any thread, and signal handlers: no
// lock. A forked child has a copy. Fails: no; of more than 1,024 extents the rest is not watched, and of more than 64 changes all blocks count as changed.
#pragma once
#include <cstdint>

namespace coco::heap {

// The allocator has these addresses from now on.
void watch_private(const void* begin, std::uint64_t bytes);
// Notes that the program replaces a range, or unmaps it; nothing where the allocator has none of it.
void note_private(const void* address, std::uint64_t bytes);
// Whether any of a range was noted.
bool is_private_noted(const void* address, std::uint64_t bytes);

}  // namespace coco::heap
