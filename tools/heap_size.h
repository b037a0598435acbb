// SPDX-License-Identifier: BSD-3-Clause
//
// How large the shared heap of a rank would be here: for `coco info` and `coco doctor`. Called by the command
// only. Thread safety: any thread. Fails: 0 where there would be none.
#pragma once
#include <cstdint>

namespace coco::tools {

// By COCO_HEAP_LIMIT, the memory, the limits and the ranks of this node, as heap/segment.cc has it.
std::uint64_t heap_bytes();
// On a mount that limits shared memory.
std::uint64_t mount_heap_bytes(std::uint64_t mount_bytes, std::uint64_t free_bytes);

}  // namespace coco::tools
