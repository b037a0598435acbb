// SPDX-License-Identifier: BSD-3-Clause
//
// jemalloc's arena of large blocks, which is ours: it tells us what is taken and freed (kept.h), and its blocks are
// private at first (private_blocks.h). Called by allocator.cc. Thread safety: any thread. Fails: null, errno is the
// caller's to set.
#pragma once
#include <cstddef>

namespace coco::heap {

// Blocks of so many bytes are large. At 4 MiB private pages begin to be faster than shared ones (bench/heap_harm).
constexpr std::size_t kLarge = 4u << 20;

// Requires: bytes >= kLarge. alignment: a power of two, or 0. zeroed: the block must read as zeros.
void* allocate_large(std::size_t bytes, std::size_t alignment, bool zeroed);
// Grows a block in place where it can. Otherwise the block moves to where there is room behind it to grow on, as glibc
// grows one by mremap. block: any, or null. Requires: bytes >= kLarge.
void* reallocate_large(void* block, std::size_t bytes);

}  // namespace coco::heap
