// SPDX-License-Identifier: BSD-3-Clause
//
// Bundles of edges: what the ranks of a node owe those of another, in one message between a leader on either
// side. Which blocks are in which bundle, and where, is worked out once for a neighbourhood, by all ranks
// together. Called by comm, which carries the mail, and read by the algorithm aggregate. No rank learns more
// than its own edges and the bundles that it leads. Where nodes combine what they send to nodes that they
// have in common, bundles_combined.h goes on from here. Thread safety: pure functions, immutable objects.
#pragma once
#include <cstdint>
#include <vector>

#include "schedule/combining.h"
#include "schedule/edges.h"
#include "topology/node_map.h"

namespace coco::schedule {

// A block in a bundle. Travels between ranks as bytes.
struct Bundled {
    Edge edge;            // in an allgather a block serves many edges: of the filler's, any of them
    std::int32_t leader;  // in whose scratch it lies
    std::int32_t index;   // there
    std::int32_t turn;    // of those in which bundles come to the leader
};

// Seen from the leader that it lies with.
struct Bundle {
    std::int32_t peer;   // the leader at its other end
    std::int32_t first;  // block of scratch
    std::int32_t blocks;
    std::int32_t turn;                  // incoming: see Bundled
    std::vector<std::int32_t> fillers;  // outgoing: the mates that leave blocks in it, without the leader
    // Outgoing: its blocks; in an allgather by the ranks whose they are, else all as the node's.
    std::vector<Load> loads;
    friend bool operator==(const Bundle&, const Bundle&) = default;
};

// What one rank knows. Its scratch: at the bottom what it stages for mates, then the bundles.
struct Bundles {
    // That it leads. incoming: by turn.
    std::vector<Bundle> incoming, outgoing;
    std::vector<Bundled> filled;  // where it leaves its blocks for other nodes
    std::vector<Bundled> taken;   // where it finds those of its edges from other nodes
    // What becomes of the outgoing ones. A cargo's rank is the peer of the bundle, or of what would be its
    // bundle to that node.
    CombinedSends sends;
    std::int32_t staged_blocks = 0;
    std::int32_t scratch_blocks = 0;
};

// Which ranks speak for their nodes.
struct Leading {
    std::int32_t leaders = 0;    // of each node, or all that it has; 0: all
    std::int32_t threshold = 0;  // nodes in common that make two nodes combine; 0: none do
    std::int32_t depth = 1;      // how often what goes to a node is combined; 0: any number
    friend bool operator==(const Leading&, const Leading&) = default;
};

// Who leads what. Where nodes do not combine, leaders are chosen by distance, as in multileader: the node i
// places on is the partner of rank (i - 1) mod L of a node of L leaders. Where they do, what goes to a node
// is led on every other by the rank of the same number, so that those who can combine are the same: there the
// nodes are dealt to the leaders in layers. Who receives is chosen by distance always.
class Leaders {
  public:
    Leaders(const topology::NodeMap& map, const Leading& leading);

    std::int32_t node_of(std::int32_t rank) const { return map_.node[static_cast<std::size_t>(rank)]; }
    std::int32_t ranks() const { return map_.ranks(); }
    std::int32_t distance(std::int32_t from, std::int32_t to) const;
    // Of the bundle from node to node: on the first, and on the second.
    std::int32_t sender(std::int32_t from, std::int32_t to) const;
    std::int32_t receiver(std::int32_t from, std::int32_t to) const;

    std::int32_t layers() const { return layers_; }
    std::int32_t layer_of(std::int32_t to) const { return to % layers_; }
    std::int32_t in_layer(std::int32_t node, std::int32_t layer) const;

  private:
    std::int32_t of(std::int32_t node, std::int32_t number) const;

    const topology::NodeMap& map_;
    const Leading leading_;
    std::vector<std::vector<std::int32_t>> ranks_on_;  // by node
    std::int32_t layers_ = 1;
};

// How a rank comes to know them: it asks, then answers twice what has come to it, in the order of the
// functions, each time together with all other ranks.
class Bundling {
  public:
    struct Mail {
        std::vector<Bundled> letters;
        std::vector<std::int32_t> to;  // by letter
        void send(const Bundled& letter, std::int32_t rank) {
            letters.push_back(letter);
            to.push_back(rank);
        }
    };

    // personal: a block for each edge (alltoall), else for each sender and node (allgather).
    Bundling(const topology::NodeMap& map, std::int32_t rank, const Neighborhood& neighborhood, bool personal,
             const Leading& leading);

    // Receivers tell the leaders that receive for them which edges they have.
    Mail ask() const;
    // Those give each block its place, and tell the receivers and the leaders that send. Where nodes combine,
    // a leader does not know yet what it will receive: places are within bundles then, and the receivers are
    // told later.
    Mail assign(std::vector<Bundled> asked);
    // Those give each block its place on their side, and tell the senders.
    Mail lay_out(std::vector<Bundled> assigned);
    // Where nodes combine: without what it takes and what comes.
    Bundles finish(std::vector<Bundled> laid_out);

    // Where nodes combine, after assign(): the edges that it was asked for, with places within bundles.
    std::vector<Bundled> take_numbered() { return std::move(numbered_); }

  private:
    bool is_same_block(const Edge& a, const Edge& b) const;
    void begin_incoming(std::int32_t from);
    void load(Bundle& bundle, const Edge& edge) const;

    const Leaders leaders_;
    const std::int32_t rank_, own_node_;
    const Neighborhood& neighborhood_;
    const bool personal_, combined_;
    std::vector<Bundled> numbered_;
    Bundles bundles_;
};

// The order in which a rank takes its blocks: as they come; its own bundles first, then those of the mates
// after it: not all begin with the same leader.
void sort_taken(std::vector<Bundled>& taken, std::int32_t rank, std::int32_t ranks);

}  // namespace coco::schedule
