// SPDX-License-Identifier: BSD-3-Clause
//
// Blocks for code that allocates while it is being decided who serves the malloc family (malloc_family.h), as
// dlsym does, and the wrappers of other preloaded libraries, or while the segment is made. They come from a
// small static buffer and are never given back. Called by malloc_family.cc, by one thread at a time; by the
// doors to tell such blocks. Fails: null when the buffer is used up.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coco::heap {

inline constexpr std::size_t kEarlyBytes = 32 << 10;
extern constinit std::byte g_early[kEarlyBytes];

void* allocate_early(std::size_t bytes);  // reads as zeros
inline bool is_early(const void* block) {
    return reinterpret_cast<std::uintptr_t>(block) - reinterpret_cast<std::uintptr_t>(g_early) < kEarlyBytes;
}
bool is_any_early();
std::size_t early_bytes(const void* block);  // Requires: is_early(block)

}  // namespace coco::heap
