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
// the program's, by whatever way, can leave a stale entry. Where the kernel cannot be asked (before Linux 6.11) nothing
// outside is adopted.
//
// Called by adopted.cc, mapping_calls.cc and fork.cc. Thread safety: any thread; nobody may write to a range while it is
// adopted. A forked child gets private copies and adopts nothing. No malloc. Fails: by return value, with everything as it was.
#pragma once
#include <cstddef>
#include <cstdint>

#include "heap/segment.h"

namespace coco::heap {

// Whether anything outside could be adopted in this process.
bool adopts_outside();
// Where peers read an adopted range in the own segment, but for the bytes of its partial pages; null: it is not adopted.
const std::byte* alias_of(const void* address, std::uint64_t bytes);
// Whether the page of an address is adopted.
bool is_adopted_outside(const void* address);
// Copies the bytes of a range's partial pages to its alias. Requires: alias_of() is not null.
void refresh_alias(const void* address, std::uint64_t bytes);
// Adopts what is private of the whole pages of a range. Requires: nobody holds its pages where they are (held.h, os/pinned.h).
// Returns: whether the range has an alias now.
bool adopt_outside(const void* address, std::uint64_t bytes);
// Whether an address lies in a region, so that its page may be adopted. Takes no lock that a signal handler could meet.
bool may_be_outside_adopted(const void* address);

// The adopted pages of a range that the program is about to unmap, to replace or to drop: drop() gives their memory in
// the annex back when it has done so. Signal handlers too: where the regions are busy, the next adoption finds that memory.
class LeavingPages {
  public:
    LeavingPages(const void* address, std::size_t bytes);
    bool any() const { return count_ != 0; }
    void drop() const;

  private:
    static constexpr int kMost = 8;  // further ones wait for the next adoption
    struct Run {
        std::byte* alias;
        std::uint64_t bytes;
    };
    Run runs_[kMost];
    int count_ = 0;
};

// Gives the memory of adopted pages back that nobody maps any more. For each region that is left a part of 0.2 ms.
void sweep_outside();

// Around a fork: nobody changes regions meanwhile.
void lock_outside();
void unlock_outside();
// Before a fork that runs on an adopted stack, as those do that the C library makes by itself: gives the thread's stack
// private pages. What other threads write to it just then may be lost.
void leave_adopted_stack();
// In a forked child: puts private copies in the place of all adopted pages. Returns: false without memory.
bool privatize_outside(const Segment& segment);

}  // namespace coco::heap
