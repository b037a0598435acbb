// SPDX-License-Identifier: BSD-3-Clause
//
// Process topologies on paper, and what each rank knows of them.
#pragma once
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "schedule/bundles.h"
#include "schedule/combining.h"
#include "schedule/edges.h"

namespace coco::simulator {

// By rank: whom it sends to and receives from, in the order of its blocks; below 0: nobody.
struct Graph {
    std::string name;
    std::vector<std::vector<std::int32_t>> destinations, sources;
    std::int32_t ranks() const { return static_cast<std::int32_t>(destinations.size()); }
};

using Arc = std::pair<std::int32_t, std::int32_t>;
// Blocks in the order of the arcs.
Graph from_arcs(std::string name, std::int32_t ranks, const std::vector<Arc>& arcs);
// A Cartesian grid: two neighbours in each dimension, nobody beyond borders.
Graph grid(const std::vector<std::int32_t>& extents, bool periodic);
// Every rank within `radius` in each dimension of a periodic grid: repeated, and the rank itself, where it is
// small.
Graph moore(const std::vector<std::int32_t>& extents, std::int32_t radius);
// Each ordered pair, a rank and itself too, with this probability; `repeat`: some of them twice; blocks in
// random order on both sides.
Graph random_graph(std::int32_t ranks, double density, bool repeat, std::mt19937& random);

// The neighbourhood that each rank knows. Where two ranks have several edges, the n-th sent is the n-th
// received, or, crossed, the n-th last (MPI libraries differ).
std::vector<schedule::Neighborhood> neighborhoods_of(const Graph& graph, bool crossed = false);
// By rank, all edges weighing the same; or, for the curves, as much as `weight` says.
std::vector<schedule::EdgeShare> shares_of(const topology::NodeMap& map,
                                           const std::vector<schedule::Neighborhood>& neighborhoods,
                                           schedule::Cut cut,
                                           std::uint64_t (*weight)(const schedule::Edge&) = nullptr);

// By rank. personal: for alltoall.
std::vector<schedule::Bundles> bundles_of(const topology::NodeMap& map,
                                          const std::vector<schedule::Neighborhood>& neighborhoods,
                                          bool personal, std::int32_t leaders = 0);

// The patterns of combining, by rank; made by letters, as comm carries them. rounds: how many that took.
std::vector<schedule::Combining> combine(const topology::NodeMap& map,
                                         const std::vector<schedule::Neighborhood>& neighborhoods,
                                         std::int32_t threshold, std::int32_t depth, int* rounds = nullptr);

// Graphs of all kinds on up to so many ranks.
std::vector<Graph> graphs(std::int32_t ranks);
// Every graph on four vertices, without repeated edges and edges to oneself.
std::vector<Graph> graphs_of_four();

}  // namespace coco::simulator
