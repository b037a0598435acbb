// SPDX-License-Identifier: BSD-3-Clause
//
// The cases of the schedule tests: every registry row with every exchange that it serves, and machines on
// paper.
#pragma once
#include <string>
#include <vector>

#include "simulator.h"

namespace coco::simulator {

struct Row {
    const algorithms::Algorithm* algorithm;
    algorithms::Exchange exchange;
    algorithms::Parameters parameters;
};
// With all values of their parameters that make another schedule on small machines.
std::vector<Row> rows();
// For an algorithm for one node: its ranks in 1, 2, 3 domains, in very uneven ones, and dealt to domains
// round robin. For others: one rank a node, one node, even nodes, very uneven ones, and ranks dealt to nodes
// round robin or in the opposite order.
std::vector<topology::NodeMap> machines(const algorithms::Algorithm& algorithm, std::int32_t ranks);
// "naive alltoall 5 ranks, domains 0 0 0 1 1, root 0, 1 segments", for messages of failed tests.
std::string to_text(const Row& row, const topology::NodeMap& map, std::int32_t root, std::int32_t segments);

}  // namespace coco::simulator
