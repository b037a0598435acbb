// SPDX-License-Identifier: BSD-3-Clause
//
// Cuts `total` things in a row into `parts` nearly equal shares, of which the first ones are one longer. Used
// to deal ranks to nodes and domains, and the cells of a curve to ranks. Requires (all): parts >= 1. Thread
// safety: pure functions.
#pragma once
#include <cstdint>

#include "base/check.h"

namespace coco::topology {

struct Share {
    std::int64_t first;
    std::int64_t count;
};

constexpr Share share_of(std::int64_t total, std::int64_t parts, std::int64_t part) {
    COCO_CHECK_DEAR(total >= 0 && parts >= 1, "things are cut into one share or more");
    COCO_CHECK_DEAR(part >= 0 && part < parts, "a share is of one of the parts");
    std::int64_t least = total / parts, longer = total % parts;
    return {part * least + (part < longer ? part : longer), least + (part < longer ? 1 : 0)};
}

// The number of the part in whose share `position` lies. Requires: 0 <= position < total.
constexpr std::int64_t part_of(std::int64_t total, std::int64_t parts, std::int64_t position) {
    COCO_CHECK_DEAR(parts >= 1, "things are cut into one share or more");
    COCO_CHECK_DEAR(position >= 0 && position < total, "a position is one of the things that are cut");
    std::int64_t least = total / parts, longer = total % parts;
    std::int64_t in_longer = longer * (least + 1);
    return position < in_longer ? position / (least + 1) : longer + (position - in_longer) / least;
}

}  // namespace coco::topology
