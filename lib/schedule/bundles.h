// SPDX-License-Identifier: BSD-3-Clause
//
// Bundles of edges: the blocks that the ranks of one node owe those of another, in one message between a
// leader on either side. All ranks together work out once for a neighbourhood which blocks are in which
// bundle, and where. Called by comm, which carries the letters, and read by the algorithm aggregate. No rank
// learns more than its own edges and the bundles that it leads. Thread safety: pure functions, immutable
// objects.
#pragma once
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/index.h"
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
    friend bool operator==(const Bundle&, const Bundle&) = default;
};

// One rank's knowledge of the bundles. Its scratch has first the blocks that it stages for mates, then the
// bundles that it leads.
struct Bundles {
    // The bundles that the rank leads; incoming ones by turn.
    std::vector<Bundle> incoming, outgoing;
    std::vector<Bundled> filled;  // where the rank leaves its blocks for other nodes
    std::vector<Bundled> taken;   // where the rank finds the blocks that come to it from other nodes
    std::int32_t staged_blocks = 0;
    std::int32_t scratch_blocks = 0;
};

// Which rank of a node leads which bundle. Leaders are chosen by distance, as in multileader: on a node of L
// leaders, leader (i - 1) mod L exchanges with the node i places further on.
class Leaders {
  public:
    // leaders: of each node (fewer on a smaller node); 0: all its ranks.
    Leaders(const topology::NodeMap& map, std::int32_t leaders);

    std::int32_t node_of(std::int32_t rank) const {
        COCO_CHECK(rank >= 0 && rank < map_.ranks(), "a rank of a bundle is in the map");
        return map_.node[base::index(rank)];
    }
    std::int32_t ranks() const { return map_.ranks(); }
    std::int32_t distance(std::int32_t from, std::int32_t to) const;
    // The leaders of the bundle from one node to another: on the first node, and on the second.
    std::int32_t sender(std::int32_t from, std::int32_t to) const { return of(from, distance(from, to) - 1); }
    std::int32_t receiver(std::int32_t from, std::int32_t to) const { return of(to, distance(from, to) - 1); }

  private:
    std::int32_t of(std::int32_t node, std::int32_t number) const;

    const topology::NodeMap& map_;
    const std::int32_t leaders_;
    std::vector<std::vector<std::int32_t>> ranks_on_;  // by node
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
             std::int32_t leaders);

    // As a receiver: tells the leaders that receive for this rank which edges it has.
    Mail ask() const;
    // As a leader that receives: gives each block its place, and tells the receivers and the leaders that
    // send.
    Mail assign(std::vector<Bundled> asked);
    // As a leader that sends: gives each block its place on this side, and tells the senders.
    Mail lay_out(std::vector<Bundled> assigned);
    Bundles finish(std::vector<Bundled> laid_out);

  private:
    bool is_same_block(const Edge& a, const Edge& b) const;
    void begin_incoming(std::int32_t from);
    void load(Bundle& bundle, const Edge& edge) const;

    const Leaders leaders_;
    const std::int32_t rank_, own_node_;
    const Neighborhood& neighborhood_;
    const bool personal_;
    Bundles bundles_;
};

}  // namespace coco::schedule
