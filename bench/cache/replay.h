// SPDX-License-Identifier: BSD-3-Clause
//
// Schedules of all ranks of a node, walked over caches (model.h), as in the loop of Li, Zhang, Hoefler 2018,
// figure 9: each rank writes its send buffer, then its receive buffer; then comes the call, which is counted.
// A rank has a core to itself. Left out: what the walk itself reads, which is flags and steps.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/algorithm.h"
#include "bench/cache/model.h"

namespace coco::cache {

struct Call {
    algorithms::Exchange exchange = algorithms::Exchange::alltoall;
    std::int32_t ranks = 1, domains = 1;
    std::uint64_t block_bytes = 8;
};

struct Replay {
    bool warm = true;       // whether buffers are written before the call; else all caches are empty
    bool prefetch = false;  // whether a miss also brings in the next line of the page
    std::uint64_t page_bytes = 4096;
    std::uint32_t seed = 0;     // of the pages' places in memory, and of the turns
    bool random_turns = false;  // whether a rank copies 1 to 16 blocks at a time; else one, in rank order
};

// The schedules of all ranks. width: of tiled. Requires: the algorithm is one of one node, and serves the
// exchange.
std::vector<schedule::Schedule> schedules_of(const algorithms::Algorithm& algorithm, const Call& call,
                                             std::int32_t width = algorithms::Parameters{}.width);

// Returns: what all ranks together miss in each level. Requires: there is such a machine, with a core for
// each rank; a page is a power of two, 4096 bytes or more.
std::vector<Count> replay(const Machine& machine, const Call& call, const Replay& how,
                          std::span<const schedule::Schedule> schedules);

}  // namespace coco::cache
