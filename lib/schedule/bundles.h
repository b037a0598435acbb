// SPDX-License-Identifier: BSD-3-Clause
//
// Bundles of edges: the blocks that the ranks of one node owe those of another, in one message between a
// leader on either side. All ranks together work out once for a neighbourhood which blocks are in which
// bundle, and where. Called by comm, which carries the letters, and read by the algorithm aggregate. No rank
// learns more than its own edges and the bundles that it leads. If nodes combine their bundles,
// bundles_combined.h goes on from here. The whole story: docs/design/neighbors.md. Thread safety: pure
// functions, immutable objects.
#pragma once
#include <cstdint>
#include <vector>

#include "schedule/combining.h"
#include "schedule/edges.h"
#include "topology/node_map.h"

namespace coco::schedule {

// A block in a bundle. Sent between ranks as bytes.
struct Bundled {
    Edge edge;            // in an allgather a block serves several edges: this is any of them
    std::int32_t leader;  // the rank in whose scratch the block lies
    std::int32_t index;   // which block of that scratch it is
    std::int32_t turn;    // the number of its bundle among those that come to the leader, in their order
};

// A bundle as the leader sees it that has it in its scratch.
struct Bundle {
    std::int32_t peer;   // the leader at the other end of the message
    std::int32_t first;  // the bundle's first block of scratch
    std::int32_t blocks;
    std::int32_t turn;                  // if incoming: see Bundled
    std::vector<std::int32_t> fillers;  // if outgoing: the mates of the leader that copy blocks into it
    // If outgoing, its blocks: in an allgather by the ranks to which they belong, else all as the node's.
    std::vector<Load> loads;
    friend bool operator==(const Bundle&, const Bundle&) = default;
};

// One rank's knowledge of the bundles. Its scratch has first the blocks that it stages for mates, then the
// bundles that it leads.
struct Bundles {
    // The bundles that the rank leads; incoming ones by turn.
    std::vector<Bundle> incoming, outgoing;
    std::vector<Bundled> filled;  // where the rank leaves its blocks for other nodes
    std::vector<Bundled> taken;   // where the rank finds the blocks that come to it from other nodes
    // How the outgoing bundles are sent. A cargo's rank is the leader that receives from this node on the
    // destination node.
    CombinedSends sends;
    std::int32_t staged_blocks = 0;
    std::int32_t scratch_blocks = 0;
};

// Which ranks speak for their nodes.
struct Leading {
    std::int32_t leaders = 0;    // ranks of each node that lead (fewer on a smaller node); 0: all
    std::int32_t threshold = 0;  // two nodes with this many destinations in common combine; 0: none do
    std::int32_t depth = 1;      // how often what goes to one node may be combined; 0: any number
    friend bool operator==(const Leading&, const Leading&) = default;
};

// Which rank of a node leads which bundle. If nodes do not combine, leaders are chosen by distance, as in
// multileader: on a node of L leaders, leader (i - 1) mod L exchanges with the node i places further on. If
// nodes combine, all bundles to one node are led by the leaders of the same number on all nodes, so that
// these can combine them: the nodes are dealt to the leaders in layers. The receiving leader is always chosen
// by distance.
class Leaders {
  public:
    Leaders(const topology::NodeMap& map, const Leading& leading);

    std::int32_t node_of(std::int32_t rank) const { return map_.node[static_cast<std::size_t>(rank)]; }
    std::int32_t ranks() const { return map_.ranks(); }
    std::int32_t distance(std::int32_t from, std::int32_t to) const;
    // The leaders of the bundle from one node to another: on the first node, and on the second.
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

// How a rank comes to know its bundles. All ranks call the functions in their order here. After each of the
// first three, all ranks exchange the letters that it returned, and give what came to the next function.
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

    // personal: there is a block for each edge (alltoall), else one for each sender and node (allgather).
    Bundling(const topology::NodeMap& map, std::int32_t rank, const Neighborhood& neighborhood, bool personal,
             const Leading& leading);

    // As a receiver: tells the leaders that receive for this rank which edges it has.
    Mail ask() const;
    // As a leader that receives: gives each block its place, and tells the receivers and the leaders that
    // send. If nodes combine, the leader does not know yet what it will receive: places are within bundles
    // then, and the receivers are told later.
    Mail assign(std::vector<Bundled> asked);
    // As a leader that sends: gives each block its place on this side, and tells the senders.
    Mail lay_out(std::vector<Bundled> assigned);
    // The bundles. If nodes combine, `taken` and `incoming` are still missing.
    Bundles finish(std::vector<Bundled> laid_out);

    // If nodes combine, after assign(): the edges that this leader was asked for, with places within bundles.
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

// Sorts blocks in the order in which a rank takes them: by turn, as bundles come; within a turn first from
// its own bundles, then from those of the ranks after it, so that not all ranks begin with the same leader.
void sort_taken(std::vector<Bundled>& taken, std::int32_t rank, std::int32_t ranks);

}  // namespace coco::schedule
