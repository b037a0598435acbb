// SPDX-License-Identifier: BSD-3-Clause
//
// With COCO_HEAP=adaptive large blocks are born private: anonymous pages over the segment's addresses, so that the
// program has from them what it has from the C library's malloc: huge pages as the system gives them, copy on write at
// fork. Peers cannot read them. A range that collectives come back to is adopted: its bytes are copied into the segment's
// pages of the same offsets, and these are mapped over the addresses, so that an address still is the segment's base and
// an offset.
//
// Only pages that lie within the range as a whole are adopted, as other threads may write to what is beside it. The
// segment's pages behind the two partial pages at its ends are their shadows: copies for peers to read, made anew for
// each call.
//
// Called by large.cc, the doors and by blocks/side.cc. Thread safety: any thread; nobody may write to a range while it is
// adopted, as nobody may write to the buffer of a call. A forked child has private copies and adopts nothing. No malloc but in adopt().
// Fails: by return value, with everything as it was.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/heap_mode.h"

namespace coco::heap {

// COCO_HEAP. A wrong value counts as unset here; MPI_Init refuses it.
base::HeapMode mode();

// Whether large blocks are born private. Not where private memory is charged before it is touched (overcommit 2,
// RLIMIT_DATA): an allocator that keeps address space would take it from the program.
bool bears_private();
// Lays private pages over a range of the segment whose pages nobody uses. Page bounds only.
bool make_private(std::byte* begin, std::uint64_t bytes);
// Puts the segment's pages back; what was written is lost. Page bounds only.
bool end_private(std::byte* begin, std::uint64_t bytes);
// Moves the pages of a private range to another one, of which nobody uses the bytes; the source reads as zeros then.
// Returns: false, and nothing is moved, where not both are private and begin with a page, or the kernel cannot do that.
bool move_private(std::byte* from, std::byte* to, std::uint64_t bytes);
// Makes all of a block that nobody has written to yet readable for peers. Requires: it is the whole block.
bool share_fresh_block(void* block, std::uint64_t usable_bytes);

// Gives the memory of shadows behind a range of private pages back.
void forget_shadows(const void* address, std::uint64_t bytes);

// The address in the own segment at which peers can read all of a range, once its shadows are refreshed: its own, or that of its
// alias (outside.h); null: they cannot.
const std::byte* readable_at(const void* address, std::uint64_t bytes);
// Whether a range could be adopted: nobody holds its pages where they are. Some 50 us.
bool may_adopt(const void* address, std::uint64_t bytes);
// Adopts what is private of a range, unless a window (held.h) or a device (os/pinned.h) may go on with its old pages.
// Returns: whether it is readable now.
bool adopt(const void* address, std::uint64_t bytes);
// Copies the partial pages at the ends of a range to their shadows, if they are private. Requires: readable_at() is not null.
void refresh_shadows(const void* address, std::uint64_t bytes);

}  // namespace coco::heap
