// SPDX-License-Identifier: BSD-3-Clause
#include "heap/early_blocks.h"

#include <cstdint>

#include "base/bits.h"
#include "base/check.h"

namespace coco::heap {

alignas(16) constinit std::byte g_early[kEarlyBytes] = {};

namespace {

constexpr std::size_t kAlignment = 16;
constinit std::size_t g_used = 0;

}  // namespace

// A block's size stands before it.
void* allocate_early(std::size_t bytes) {
    if (bytes > sizeof g_early) return nullptr;
    std::size_t whole = kAlignment + base::round_up(bytes, kAlignment);
    if (whole > sizeof g_early - g_used) return nullptr;
    std::byte* block = g_early + g_used + kAlignment;
    *reinterpret_cast<std::size_t*>(block - kAlignment) = bytes;
    g_used += whole;
    return block;
}

bool is_any_early() { return g_used != 0; }

std::size_t early_bytes(const void* block) {
    COCO_CHECK(is_early(block), "the size of an early block stands before it");
    return *reinterpret_cast<const std::size_t*>(static_cast<const std::byte*>(block) - kAlignment);
}

}  // namespace coco::heap
