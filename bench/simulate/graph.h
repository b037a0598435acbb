// SPDX-License-Identifier: BSD-3-Clause
//
// The process topology of a run: SMPI has no communicators with one, so schedules are given it directly. Made
// once, of all ranks at once. Thread safety: immutable once made.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "schedule/edges.h"
#include "topology/node_map.h"

namespace simulate {

struct Graph {
    // By rank.
    std::vector<coco::schedule::Neighborhood> near;
    std::vector<coco::schedule::EdgeShare> share;  // Cut::own
};

// Names as in bench/graphs.h: random:DENSITY[:SEED] moore:D:R[:all]. Returns: nothing if that is no graph.
std::optional<Graph> make_graph(const std::string& name, const coco::topology::NodeMap& map);

}  // namespace simulate
