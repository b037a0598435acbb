// SPDX-License-Identifier: BSD-3-Clause
//
// Copying one block, by size: a few moves for small ones, the C library's memcpy for middling ones (it
// chooses its instructions by cpuid), streaming stores when the data of the call outgrow the last-level
// cache, so that what is written does not push out what is still to be read.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace coco::blocks {

// Requires: the blocks are the same or do not overlap.
void copy_streaming(std::byte* target, const std::byte* source, std::size_t bytes);

inline void copy_block(std::byte* target, const std::byte* source, std::size_t bytes) {
    COCO_CHECK_DEAR(target == source || target + bytes <= source || source + bytes <= target,
                    "blocks that are copied do not overlap");
    COCO_CHECK_DEAR(bytes == 0 || (target != nullptr && source != nullptr),
                    "blocks that are copied have addresses");
    // Two moves that may overlap each other cover every length between one and two times their width.
    auto ends = [&]<class Word>(Word) {
        Word first, last;
        std::memcpy(&first, source, sizeof(Word));
        std::memcpy(&last, source + bytes - sizeof(Word), sizeof(Word));
        std::memcpy(target, &first, sizeof(Word));
        std::memcpy(target + bytes - sizeof(Word), &last, sizeof(Word));
    };
    using Sixteen = std::uint64_t __attribute__((vector_size(16)));  // a register
    if (bytes > 64) {
        std::memcpy(target, source, bytes);
    } else if (bytes >= 32) {
        Sixteen part[4];
        const std::size_t at[4] = {0, 16, bytes - 32, bytes - 16};
        for (int i = 0; i < 4; ++i) std::memcpy(&part[i], source + at[i], 16);
        for (int i = 0; i < 4; ++i) std::memcpy(target + at[i], &part[i], 16);
    } else if (bytes >= 16) {
        ends(Sixteen{});
    } else if (bytes >= 8) {
        ends(std::uint64_t{});
    } else if (bytes >= 4) {
        ends(std::uint32_t{});
    } else if (bytes >= 2) {
        ends(std::uint16_t{});
    } else if (bytes == 1) {
        *target = *source;
    }
}

}  // namespace coco::blocks
