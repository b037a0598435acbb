// SPDX-License-Identifier: BSD-3-Clause
//
// On which node and in which domain a rank counts: the real ones, or those of a machine that COCO_TOPOLOGY
// invents. Called when ranks make themselves known to others. Thread safety: any thread.
#pragma once
#include <cstdint>

namespace coco::comm {

struct Labels {
    std::uint64_t node, domain;  // equal labels: the same node, and within it the same domain
};
// host: as in heap::SegmentId. rank, ranks: which of how many is dealt to an invented machine.
Labels labels_of(std::uint64_t host, std::int32_t ranks, std::int32_t rank);

}  // namespace coco::comm
