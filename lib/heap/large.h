// SPDX-License-Identifier: BSD-3-Clause
//
// jemalloc's arena of large blocks, which tells us what is freed and taken again (kept.h).
// Called by allocator.cc. Thread safety: any thread. Fails: no; unwatched, large blocks go back at every
// free.
#pragma once
#include <cstddef>

namespace coco::heap {

// Below all that jemalloc rounds up to its oversize_threshold (system.cc).
constexpr std::size_t kPerhapsLarge = 28u << 20;

// Grows in place where it can. Else the block moves to where there is room behind it to grow on: what glibc
// does by mremap, shared memory cannot.
void* reallocate_large(void* block, std::size_t bytes);
// After a large block was allocated: from then on its arena's extents are ours to see. Cheap when done
// before.
void watch_large();
// Whether what this thread takes now must read as zeros.
void expect_zeros(bool whether);

}  // namespace coco::heap
