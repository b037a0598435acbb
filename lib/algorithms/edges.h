// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges between neighbours by shared memory within nodes, and by a message for each edge between nodes:
// the common part of naive, morton, numa_morton and eager. Requires (both functions): shape.neighborhood and
// shape.share are set. Thread safety: pure functions.
#pragma once
#include <set>

#include "algorithms/algorithm.h"

namespace coco::algorithms {

// Each rank copies the edges of its share, whichever ranks send and receive them, straight from send to
// receive buffers. It waits for the ranks whose areas it touches, just before it touches them, and at the end
// for the ranks that touch its own.
schedule::Schedule copy_edges(const Shape& shape);
// Each rank leaves its blocks in its scratch, where its neighbours of the node take them. It waits for nobody
// at the end. Requires: the share is the rank's own.
schedule::Schedule stage_edges(const Shape& shape);

// The pieces of these two schedules, for schedules that do something else in between.
class EdgeWalk {
  public:
    explicit EdgeWalk(const Shape& shape)
        : shape_(shape),
          personal_(shape.exchange == Exchange::alltoall),
          neighborhood_(*shape.neighborhood) {}

    schedule::Builder steps;

    bool is_on_other_node(std::int32_t rank) const;
    // The index in the send area of block `sent`.
    std::int32_t block_of(std::int32_t sent) const { return personal_ ? sent : 0; }
    // The number of blocks in the send area, and of those that are staged.
    std::int32_t send_extent() const { return personal_ ? neighborhood_.send_blocks() : 1; }

    // All messages are started at once. With a limited number of messages under way ranks could wait for each
    // other in a ring, as the ranks of a graph have no common order.
    void receive_from_other_nodes();
    void send_to_other_nodes();
    // Copies the blocks for other ranks of the node to scratch, each to its index in the send area; in an
    // allgather there is one.
    void fill_scratch();
    void copy_share();
    void copy_staged_share();

  private:
    void await_arrival(std::int32_t rank);

    const Shape& shape_;
    const bool personal_;
    const schedule::Neighborhood& neighborhood_;
    std::set<std::int32_t> arrived_;
};

}  // namespace coco::algorithms
