// SPDX-License-Identifier: BSD-3-Clause
//
// The set-up that the ranks of a graph do together before their first call: who combines what, which bundles
// go between nodes. All ranks' makers run here, in one process, and letters go from hand to hand; what that
// would cost on the simulated machine is counted and computed, not simulated. Thread safety: none.
#pragma once
#include <list>
#include <map>
#include <utility>
#include <vector>

#include "graph.h"
#include "schedule/bundles.h"
#include "schedule/combining.h"

namespace simulate {

// The cost of a set-up: of all ranks together, but for times.
struct SetupCost {
    std::int64_t rounds = 0, letters = 0, bytes = 0;
    double network_s =
        0;             // of the slowest rank of each round: an alltoall of lengths, the letters, an allreduce
    double cpu_s = 0;  // a rank's mean, of this machine's real time
    void add(const SetupCost& other);
};

template <class Part>
struct Made {
    std::vector<Part> of;  // by rank
    SetupCost cost;
};

class Setup {
  public:
    Setup(const Graph& graph, const coco::topology::NodeMap& map) : graph_(graph), map_(map) {}

    // Made by whoever asks first.
    const Made<coco::schedule::Combining>& combining(std::int32_t threshold, std::int32_t depth);
    const Made<coco::schedule::Bundles>& bundles(bool personal, std::int32_t leaders);

  private:
    const Graph& graph_;
    const coco::topology::NodeMap& map_;
    std::map<std::pair<std::int32_t, std::int32_t>, Made<coco::schedule::Combining>> combining_;
    struct KeptBundles {
        bool personal;
        std::int32_t leaders;
        Made<coco::schedule::Bundles> made;
    };
    std::list<KeptBundles> bundles_;
};

}  // namespace simulate
