// SPDX-License-Identifier: BSD-3-Clause
//
// Programs of a few operations, and their executions found by trying everything: each thread next, each store
// that it may read, each place that a store may have. Slow, and plainly complete.
#pragma once
#include <cstdint>
#include <set>
#include <vector>

#include "explorer.h"
#include "graph.h"

namespace coco::model {

struct Step {
    Does does;
    int location;
    Order order;
};
using Program = std::vector<std::vector<Step>>;  // by thread

std::set<std::vector<std::uint64_t>> executions_of(const Program& program);

}  // namespace coco::model
