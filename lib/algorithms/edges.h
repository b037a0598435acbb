// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges between neighbours by shared memory within nodes and a message for each edge between them: the
// common part of naive, morton, numa_morton and eager. Requires (both): shape.neighborhood and shape.share.
#pragma once
#include <set>

#include "algorithms/algorithm.h"

namespace coco::algorithms {

// Each rank copies the edges of its share, whoever sends and receives them, straight from send to receive
// buffers. It waits, just before it touches them, for the ranks whose areas it touches, and at the end for
// those that touch its own.
schedule::Schedule copy_edges(const Shape& shape);
// Each rank leaves its blocks in its scratch, where its neighbours of the node take them. It waits for nobody
// at the end. Requires: the share is the rank's own.
schedule::Schedule stage_edges(const Shape& shape);

// The pieces of these, for schedules that do something else in between.
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
    // Blocks of the send area, and of what is staged.
    std::int32_t send_extent() const { return personal_ ? neighborhood_.send_blocks() : 1; }

    // All at once: the ranks of a graph have no order in which none would wait for another's window.
    void receive_from_other_nodes();
    void send_to_other_nodes();
    // The blocks for ranks of the node, each where it is in the send area; an allgather's one.
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
