// SPDX-License-Identifier: BSD-3-Clause
//
// jemalloc's arenas with memory of our choice: on the own segment, or private to the process and given back
// to the system page by page as the C library's large blocks are. Called by large.cc and libc_blocks.cc.
// Thread safety: any thread. No malloc. Fails: by return value.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/heap_mode.h"

namespace coco::heap {

enum class Arena {
    // On the segment where that may have huge pages, up to a bound; else private. Freed pages stay for a
    // while.
    middle,
    large,   // private, on huge pages; with COCO_HEAP=shared on the segment. Freed pages go back at once
    shared,  // on the segment
    libc,    // private
};
// jemalloc's flags for a block of an arena, which is made when it is first asked for; 0: it cannot be made.
int arena_flags(Arena which);

// COCO_HEAP. A wrong value counts as unset here; MPI_Init refuses it.
base::HeapMode mode();
// Whether new blocks of an arena are on the segment.
bool is_on_segment(Arena which);
// Whether large blocks are born as middle ones from now on: where ranks cannot read each other's private
// memory.
void share_large_blocks(bool share);
// The arena of a block of kMiddle bytes or more (large.h).
Arena arena_of(std::size_t bytes);
// This rank's share of the node's memory, or of what its control group grants, once that is known.
std::uint64_t memory_share_bytes();
void bound_memory(std::uint64_t node_bytes);
// Whether RLIMIT_AS counts addresses.
bool is_address_space_bounded();

// Around fork: no other thread makes an arena.
void lock_arenas();
void unlock_arenas();

}  // namespace coco::heap
