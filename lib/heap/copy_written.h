// SPDX-License-Identifier: BSD-3-Clause
//
// Copies of shared pages for a forked child. Called by fork.cc and outside.cc. No malloc, no door. Thread safety: any
// thread. Fails: by return value.
#pragma once
#include <cstddef>
#include <cstdint>

#include "os/shared_memory.h"

namespace coco::heap {

// Copies what was ever written of a range of the segment's file to `target`, which reads as zeros. mapped: the range in this
// process, to be read where there is no file any more (its fd is -1). asks_for_huge: the kernel is asked for huge pages where
// whole ones are copied, which takes a fifth of the time; they lie as the target's addresses do.
bool copy_written(os::Written& written, std::uint64_t offset, std::uint64_t bytes, const std::byte* mapped,
                  std::byte* target, bool asks_for_huge = false);

}  // namespace coco::heap
