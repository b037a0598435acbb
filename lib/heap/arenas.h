// SPDX-License-Identifier: BSD-3-Clause
//
// jemalloc's arenas with memory of our choice: on the own segment, or private to the process and given back
// to the system page by page as the C library's large blocks are. Called by large.cc and libc_blocks.cc.
// Thread safety: any thread. No malloc. Fails: by return value.
#pragma once
#include <cstddef>

#include "base/lock.h"

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

// Whether new blocks of an arena are on the segment.
bool is_on_segment(Arena which);
// Whether large blocks are born as middle ones from now on: where ranks cannot read each other's private
// memory.
void share_large_blocks(bool share);
// The arena of a block of kMiddle bytes or more (block_sizes.h).
Arena arena_of(std::size_t bytes);

extern constinit base::Lock g_arenas_lock;  // fork.cc holds it around a fork

}  // namespace coco::heap
