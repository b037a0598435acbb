// SPDX-License-Identifier: BSD-3-Clause
//
// Blocks in jemalloc's arenas with memory of our choice: on the own segment, or private to the process and
// given back to the system page by page as the C library's large blocks are. Called by allocator.cc, and by
// dispatch in MPI_Init. Thread safety: any thread. No malloc. Fails: null, errno is the caller's to set.
#pragma once
#include <cstddef>

#include "base/lock.h"
#include "heap/block_sizes.h"

namespace coco::heap {

enum class Arena {
    // On the segment where that may have huge pages, up to a bound; else private. Freed pages stay for a
    // while.
    middle,
    large,   // private, on huge pages; with COCO_HEAP=shared on the segment. Freed pages go back at once
    shared,  // on the segment
    libc,    // private
};
// alignment: a power of two, or 0. zeroed: the block must read as zeros.
void* allocate_in(Arena which, std::size_t bytes, std::size_t alignment, bool zeroed);
// Grows a block in place where it can; a large one that moves comes to where there is room behind it to grow
// on, as glibc grows one by mremap. block: any, or null. bytes: kMiddle or more.
void* reallocate_large(void* block, std::size_t bytes);

// Whether new blocks of an arena are on the segment.
bool is_on_segment(Arena which);
// Whether large blocks are born as middle ones from now on: where ranks cannot read each other's private
// memory.
void share_large_blocks(bool share);
// The arena of a block of kMiddle bytes or more (block_sizes.h).
Arena arena_of(std::size_t bytes);

extern constinit base::Lock g_arenas_lock;  // fork.cc holds it around a fork

}  // namespace coco::heap
