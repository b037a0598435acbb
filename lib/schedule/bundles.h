// SPDX-License-Identifier: BSD-3-Clause
//
// Bundles of edges: what the ranks of a node owe those of another, in one message between a leader on either
// side. Which blocks are in which bundle, and where, is worked out once for a neighbourhood, by all ranks
// together. Called by comm, which carries the mail, and read by the algorithm aggregate. No rank learns more
// than its own edges and the bundles that it leads. Thread safety: pure functions, immutable objects.
#pragma once
#include <cstdint>
#include <vector>

#include "schedule/edges.h"
#include "topology/node_map.h"

namespace coco::schedule {

// A block in a bundle. Travels between ranks as bytes.
struct Bundled {
    Edge edge;            // in an allgather a block serves many edges: of the filler's, any of them
    std::int32_t leader;  // in whose scratch it lies
    std::int32_t index;   // there
    std::int32_t turn;    // of the bundle among those that come to the leader
};

// Seen from the leader that it lies with.
struct Bundle {
    std::int32_t peer;   // the leader at its other end
    std::int32_t first;  // block of scratch
    std::int32_t blocks;
    std::vector<std::int32_t> fillers;  // outgoing: the mates that leave blocks in it, without the leader
    friend bool operator==(const Bundle&, const Bundle&) = default;
};

// What one rank knows. Its scratch: at the bottom what it stages for mates, then what comes, then what goes.
struct Bundles {
    std::vector<Bundle> incoming, outgoing;  // that it leads; by distance of the nodes
    std::vector<Bundled> filled;             // where it leaves its blocks for other nodes
    std::vector<Bundled> taken;              // where it finds those of its edges from other nodes
    std::int32_t staged_blocks = 0;
    std::int32_t scratch_blocks = 0;
};

// How a rank comes to know them: it asks, then answers twice what has come to it, in the order of the
// functions, each time together with all other ranks. Leaders are chosen by distance, as in multileader: the
// node i places on is the partner of rank (i - 1) mod L of a node of L ranks.
class Bundling {
  public:
    struct Mail {
        std::vector<Bundled> letters;
        std::vector<std::int32_t> to;  // by letter
    };

    // personal: a block for each edge (alltoall), else for each sender and node (allgather).
    Bundling(const topology::NodeMap& map, std::int32_t rank, const Neighborhood& neighborhood,
             bool personal);

    // Receivers tell the leaders that receive for them which edges they have.
    Mail ask() const;
    // Those give each block its place, and tell the receivers and the leaders that send.
    Mail assign(std::vector<Bundled> asked);
    // Those give each block its place on their side, and tell the senders.
    Mail lay_out(std::vector<Bundled> assigned);
    Bundles finish(std::vector<Bundled> laid_out);

  private:
    std::int32_t node_of(std::int32_t rank) const { return map_.node[static_cast<std::size_t>(rank)]; }
    std::int32_t leader_of(std::int32_t node, std::int32_t from, std::int32_t to) const;
    std::int32_t distance(std::int32_t from, std::int32_t to) const;
    bool is_same_block(const Edge& a, const Edge& b) const;
    Bundle& append(std::vector<Bundle>& bundles, std::int32_t peer);

    const topology::NodeMap& map_;
    const std::int32_t rank_;
    const Neighborhood& near_;
    const bool personal_;
    std::vector<std::vector<std::int32_t>> ranks_on_;  // by node
    Bundles bundles_;
};

}  // namespace coco::schedule
