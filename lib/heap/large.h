// SPDX-License-Identifier: BSD-3-Clause
//
// Middle and large blocks, which lie in arenas of their own (arenas.h). Called by allocator.cc. Thread
// safety: any thread. Fails: null, errno is the caller's to set.
#pragma once
#include <cstddef>

namespace coco::heap {

// Middle blocks are those that the threads' caches do not hold (tcache_max in system.cc).
constexpr std::size_t kMiddle = (256u << 10) + 1;
// Large ones are those that glibc always maps and unmaps. Peers read so long ones through the kernel
// nearly as fast as by loads.
constexpr std::size_t kLarge = (32u << 20) + 1;

// bytes: kMiddle or more. alignment: a power of two, or 0. zeroed: the block must read as zeros.
void* allocate_large(std::size_t bytes, std::size_t alignment, bool zeroed);
// The same on the segment, if any memory is.
void* allocate_large_shared(std::size_t bytes, std::size_t alignment);
// Grows a block in place where it can; a large one that moves comes to where there is room behind it to grow
// on, as glibc grows one by mremap. block: any, or null. bytes: kMiddle or more.
void* reallocate_large(void* block, std::size_t bytes);

}  // namespace coco::heap
