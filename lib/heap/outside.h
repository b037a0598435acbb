// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of the program outside the segment's addresses: static data, stacks, its own anonymous mappings, the blocks of
// another malloc. A range of it that collectives come back to is adopted: its bytes are copied to pages of the segment's
// annex, which are then mapped over the same addresses. The annex is mapped in this process and in its peers like all of
// the segment, so peers read the range at its alias, the address of the same pages there.
//
// Addresses are divided into regions. A region has room in the annex for all of its pages, in their order, whether adopted or
// not, so that a range that is adopted piece by piece has one alias. The partial pages at the ends of a range stay as they are;
// their bytes are copied to the alias for each call.
//
// Whether pages are adopted stands in no table: the kernel is asked in each call what is mapped there, so that no change of
// the program's, by whatever way, can leave a stale entry. Before Linux 6.11 that means to read the list of the process's
// mappings, so small ranges are not adopted there: below 2 MiB, or below 4 KiB for each mapping.
//
// Called by private_blocks.cc, mapping_calls.cc, fork.cc and the doors of fork. Thread safety: any thread; nobody may write to a range while it is
// adopted. A forked child gets private copies and adopts nothing. No malloc. Fails: by return value, with everything as it was.
#pragma once
#include <cstddef>
#include <cstdint>

#include "heap/segment.h"

namespace coco::heap {

// Whether a range of that size outside could be adopted in this process.
bool adopts_outside(std::uint64_t bytes);
// Where peers read an adopted range in the own segment, but for the bytes of its partial pages; null: it is not adopted.
const std::byte* alias_of(const void* address, std::uint64_t bytes);
// Whether the page of an address is adopted.
bool is_adopted_outside(const void* address);
// Copies the bytes of a range's partial pages to its alias. Requires: alias_of() is not null.
void refresh_alias(const void* address, std::uint64_t bytes);
// Adopts what is private of the whole pages of a range. Requires: nobody holds its pages where they are (held.h, os/pinned.h).
// Returns: whether the range has an alias now.
bool adopt_outside(const void* address, std::uint64_t bytes);
// Whether an address lies in a region, so that its page may be adopted. Takes no lock.
bool may_be_outside_adopted(const void* address);
// Whether there is any region.
bool is_any_outside_adopted();

// For the doors of the program's own calls. They look at what the kernel says, and take no lock but to give memory back.
//
// How many bytes of a range are adopted.
std::uint64_t adopted_bytes(const void* address, std::uint64_t bytes);
// Puts private pages in the place of the adopted ones of a range: with their bytes, or as new.
enum class Bytes { kept, dropped };
bool leave_adopted(const void* address, std::uint64_t bytes, Bytes which);
// Gives the memory of adopted pages back that nobody maps any more. bytes: as many were left just now; few of them wait for
// the next time. 0.5 us for each mapping of the process. Not where another thread is at it, or adopts.
void sweep_outside(std::uint64_t bytes = UINT64_MAX);

// Around a fork: nobody adopts meanwhile, and what is adopted is written down for the child.
void lock_outside();
void unlock_outside();
// Before a fork that runs on an adopted stack, as those do that the C library makes by itself: gives the thread's frames
// private pages. What other threads write to these just then may be lost. Requires: lock_outside().
void leave_adopted_stack();
// In a forked child: puts private copies in the place of all adopted pages. Returns: false without memory, or where the
// parent could not write them down.
bool privatize_outside(const Segment& segment);

}  // namespace coco::heap
