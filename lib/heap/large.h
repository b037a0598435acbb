// SPDX-License-Identifier: BSD-3-Clause
//
// jemalloc's arena of large blocks, which tells us what is freed and taken again (kept.h).
// Called by allocator.cc. Thread safety: any thread. Fails: no; unwatched, large blocks go back at every
// free.
#pragma once
#include <cstddef>

namespace coco::heap {

// A size below all those that jemalloc rounds up to its oversize_threshold (system.cc).
constexpr std::size_t kPerhapsLarge = 28u << 20;

// Grows a block in place where it can. Otherwise the block moves to where there is room behind it to grow on:
// shared memory cannot do what glibc does by mremap.
void* reallocate_large(void* block, std::size_t bytes);
// Called after a large block was allocated: from then on our hooks see its arena's extents. Cheap when done
// before.
void watch_large();
// Says whether large blocks that this thread takes from now on must read as zeros.
void expect_zeros(bool whether);

}  // namespace coco::heap
