// SPDX-License-Identifier: BSD-3-Clause
//
// Questions about the own segment and changes to it that only this room may use.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/lock.h"
#include "heap/view.h"

namespace coco::heap {

// The carvable range, also in a forked child, whose copy of it is private. 0 bytes: there never was one.
struct Range {
    std::byte* base;
    std::uint64_t bytes;
};
Range carvable();
// Called before the segment is made: its making may allocate, and whose that memory is has to be decided
// first. Defined by malloc_family.cc; the decision makes the segment if malloc is ours.
void come_before_segment();
// Takes whole pages of an area that nobody has, at an address that is a multiple of `alignment`. Returns:
// their offset; 0 where there are none, in a forked child, and where limits or the system refuse them.
std::uint64_t take_own(Area area, std::uint64_t bytes, std::uint64_t alignment);
// Gives pages of the heap back, which must have been given up already. Their addresses come again only if
// nobody has taken any above them.
void give_own(std::uint64_t offset, std::uint64_t bytes);
// End of all that is taken of the heap.
std::uint64_t taken_end();
extern constinit base::Lock g_taking_lock;  // fork.cc holds it around a fork
// Whether a descriptor still is the segment's (programs close what they did not open).
bool is_own_descriptor(int fd);
// Whether pages must be reserved before they are touched (os::MemoryObject::on_mount).
bool must_reserve_pages();
// Makes a range of the segment read as zeros and gives its pages back. Returns: false with the pages as they
// were, as where the program has mapped something else.
bool punch_shared(void* address, std::uint64_t bytes);
// In a forked child: this process has no segment and no peers any more, but a private copy of so much of the
// heap. Nothing is mapped beyond, so that the child is charged for no more (strict overcommit, RLIMIT_DATA).
void forget_segments(std::uint64_t heap_bytes);

}  // namespace coco::heap
