// SPDX-License-Identifier: BSD-3-Clause
//
// Graphs in which a load that is there already reads a store that is about to be added.
#pragma once
#include <functional>

#include "graph.h"

namespace coco::model {

// A store that a thread is about to add: without its rank.
struct NewStore {
    std::int16_t thread;
    Event event;
    Clock known;   // what its thread knows of before it
    Clock causes;  // what leads to it
};

// Hands each such graph, with the store, to `use`.
void for_each_revisit(const Graph& graph, const NewStore& store, const std::function<void(Graph&&)>& use);

}  // namespace coco::model
