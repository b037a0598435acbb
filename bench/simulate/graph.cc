// SPDX-License-Identifier: BSD-3-Clause
#include "graph.h"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>

#include "../peers.h"

namespace simulate {
namespace {

using bench::Peers;
using coco::schedule::Edge;

using PeersOf = std::function<Peers(int rank)>;

PeersOf peers_of(const std::string& name, int ranks) {
    double density = 0;
    int seed = 1, d = 0, radius = 0;
    if (std::sscanf(name.c_str(), "random:%lf:%d", &density, &seed) >= 1)
        return [=](int rank) { return bench::random_peers(density, seed, rank, ranks); };
    if (std::sscanf(name.c_str(), "moore:%d:%d", &d, &radius) != 2 || d < 1 || radius < 1) return nullptr;
    std::vector<int> dims(static_cast<std::size_t>(d));
    MPI_Dims_create(ranks, d, dims.data());
    bool repeated = name.ends_with(":all");
    return [=](int rank) { return bench::moore_peers(dims, radius, repeated, rank); };
}

// Where the blocks go that a receiver has from each sender: several edges between two ranks in order.
class Landing {
  public:
    explicit Landing(const std::vector<int>& sources) {
        for (std::size_t i = sources.size(); i-- > 0;)
            of_[sources[i]].push_back(static_cast<std::int32_t>(i));
    }
    std::int32_t take(int sender) {
        auto& left = of_.at(sender);
        std::int32_t next = left.back();
        left.pop_back();
        return next;
    }

  private:
    std::map<int, std::vector<std::int32_t>> of_;
};

void join(Graph& graph, std::vector<Landing>& landings) {
    for (std::int32_t from = 0; from < std::ssize(graph.near); ++from) {
        const auto& destinations = graph.near[static_cast<std::size_t>(from)].destinations;
        for (std::int32_t i = 0; i < std::ssize(destinations); ++i) {
            auto to = static_cast<std::size_t>(destinations[static_cast<std::size_t>(i)]);
            graph.near[to].incoming.push_back(
                {from, static_cast<std::int32_t>(to), i, landings[to].take(from)});
        }
    }
}

}  // namespace

std::optional<Graph> make_graph(const std::string& name, const coco::topology::NodeMap& map) {
    PeersOf peers_at = peers_of(name, map.ranks());
    if (!peers_at) return std::nullopt;
    Graph graph;
    std::vector<Landing> landings;
    for (std::int32_t r = 0; r < map.ranks(); ++r) {
        Peers peers = peers_at(r);
        auto& near = graph.near.emplace_back();
        near.destinations.assign(peers.destinations.begin(), peers.destinations.end());
        near.recv_blocks = static_cast<std::int32_t>(peers.sources.size());
        landings.emplace_back(peers.sources);
    }
    join(graph, landings);
    for (std::int32_t r = 0; r < map.ranks(); ++r)
        graph.share.push_back(coco::schedule::own_share(map, r, graph.near[static_cast<std::size_t>(r)]));
    return graph;
}

}  // namespace simulate
