// SPDX-License-Identifier: BSD-3-Clause
//
// Blocks whose pages the program has changed (overlays.h), and now frees: what it has mapped there is taken
// away again before the allocator has the memory back, so that it writes to no file of the program's and
// punches no hole into one.
// Called by allocator.cc. Thread safety: any thread. Keeps errno.
#pragma once
#include <cstddef>

namespace coco::heap {

// Makes all pages of a block the segment's again, readable and writable (in a forked child: private memory).
// Returns: false where that cannot be done, because somebody else's mapping lies in a hole, say: such a block
// must stay with the program for good.
bool restore_block(void* block, std::size_t bytes);

}  // namespace coco::heap
