// SPDX-License-Identifier: BSD-3-Clause
//
// jemalloc's arenas of large blocks, which are ours: they tell us what is taken and freed (kept.h), and their blocks are
// private at first (private_blocks.h). Called by allocator.cc. Thread safety: any thread. Fails: null, errno is the
// caller's to set.
#pragma once
#include <cstddef>

namespace coco::heap {

// Blocks of so many bytes are large where large blocks are born private: those that the threads' caches do not hold
// (tcache_max in system.cc). Private pages are faster than shared ones (bench/heap_harm). No block below this is large.
constexpr std::size_t kLarge = (256u << 10) + 1;
// Where all are shared, only those that glibc always maps and unmaps are.
constexpr std::size_t kLargeShared = 32u << 20;
std::size_t large_bytes();
inline bool is_large(std::size_t bytes) { return bytes >= kLarge && bytes >= large_bytes(); }

// Requires: is_large(bytes). alignment: a power of two, or 0. zeroed: the block must read as zeros.
void* allocate_large(std::size_t bytes, std::size_t alignment, bool zeroed);
// Grows a block in place where it can. Otherwise the block moves to where there is room behind it to grow on, as glibc
// grows one by mremap. block: any, or null. Requires: is_large(bytes).
void* reallocate_large(void* block, std::size_t bytes);

}  // namespace coco::heap
