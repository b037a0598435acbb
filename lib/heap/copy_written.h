// SPDX-License-Identifier: BSD-3-Clause
//
// Copies of shared pages for a forked child. Called by fork.cc and outside.cc. No malloc, no door. Thread safety: any
// thread. Fails: by return value.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coco::heap {

// Copies what was ever written of a range of the segment's file to `target`, which reads as zeros. mapped: the range in this
// process, to be read where there is no file any more (fd is -1).
bool copy_written(int fd, std::uint64_t offset, std::uint64_t bytes, const std::byte* mapped,
                  std::byte* target);

}  // namespace coco::heap
