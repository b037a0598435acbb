// SPDX-License-Identifier: BSD-3-Clause
//
// Blocks that lie in arenas of their own (arenas.h), as middle and large ones do. Called by allocator.cc.
// Thread safety: any thread. Fails: null, errno is the caller's to set.
#pragma once
#include <cstddef>

#include "heap/arenas.h"
#include "heap/block_sizes.h"

namespace coco::heap {

// alignment: a power of two, or 0. zeroed: the block must read as zeros.
void* allocate_in(Arena which, std::size_t bytes, std::size_t alignment, bool zeroed);
// Grows a block in place where it can; a large one that moves comes to where there is room behind it to grow
// on, as glibc grows one by mremap. block: any, or null. bytes: kMiddle or more.
void* reallocate_large(void* block, std::size_t bytes);

}  // namespace coco::heap
