// SPDX-License-Identifier: BSD-3-Clause
//
// A leader's part in a bcast, on whatever way the segments go between nodes: it sends and receives
// messages, of which a bounded number is under way, and fills the ring in its scratch from which its mates
// copy. Nodes are numbered from the root's node on (node_tree.h). Used by leader_bcast.cc and
// leader_scatter.cc, while schedules are made. Thread safety: none.
#pragma once
#include <cstdint>
#include <vector>

#include "algorithms/node_tree.h"
#include "algorithms/nodes.h"

namespace coco::algorithms {

// The number of places in the ring.
inline constexpr std::int32_t kBcastRing = 4;

class BcastLeader {
  public:
    static constexpr std::int32_t kMostUnderWay = 64;

    // Requires: shape.rank leads its node.
    BcastLeader(const Shape& shape, const Nodes& nodes);

    std::int32_t segments() const { return shape_.segments; }
    std::int32_t nodes() const { return nodes_.count(); }
    std::int32_t node() const { return own_; }
    std::int32_t rank_at(std::int32_t node) const;  // the rank that leads this node

    // Start a message of `blocks` segments. If too many messages would be under way, older ones are
    // completed.
    void send(std::int32_t to_node, std::int32_t first_segment, std::int32_t blocks);
    void receive(std::int32_t from_node, std::int32_t first_segment, std::int32_t blocks);
    std::int32_t started() const { return started_; }  // the number of messages started so far
    // Completes the first `messages` messages that were started.
    void complete_first(std::int32_t messages);

    // Puts a segment into the ring. Requires: the leader has the segment.
    void show(std::int32_t segment);
    // The segments in the order in which they were put into the ring.
    const std::vector<std::int32_t>& shown() const { return shown_; }

    schedule::Schedule take();

  private:
    schedule::Place own(std::int32_t segment) const { return {shape_.rank, area_, segment}; }
    void start();

    const Shape& shape_;
    const Nodes& nodes_;
    const schedule::Area area_;
    const std::int32_t ring_, root_node_, own_;
    std::int32_t started_ = 0, completed_ = 0;
    std::vector<std::int32_t> shown_;
    schedule::Builder steps_;
};

// Sends the segments along a tree or a chain, one after the other.
void pass_along(const NodeTree& tree, BcastLeader& leader);
// Sends each node a part of the segments, down the tree, and then each part from its node to all others:
// leader_scatter.cc. Requires: at least as many segments as nodes.
void scatter_and_gather(const NodeTree& tree, BcastLeader& leader);

}  // namespace coco::algorithms
