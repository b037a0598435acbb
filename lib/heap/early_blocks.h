// SPDX-License-Identifier: BSD-3-Clause
//
// Blocks for code that allocates while it is being decided who serves the malloc family (malloc_family.h), as the
// dynamic linker's dlsym may. They come from a small static buffer and are never given back. Called by
// malloc_family.cc, by one thread at a time. Fails: null when the buffer is used up.
#pragma once
#include <cstddef>

namespace coco::heap {

void* allocate_early(std::size_t bytes);  // reads as zeros
bool is_early(const void* block);
std::size_t early_bytes(const void* block);  // Requires: is_early(block)

}  // namespace coco::heap
