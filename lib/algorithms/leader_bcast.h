// SPDX-License-Identifier: BSD-3-Clause
//
// What a leader does in a bcast, whatever way the segments take between nodes: its messages, of which a
// bounded number is under way, and the ring in its scratch by which its mates follow. Nodes are counted from
// the root's, round (node_tree.h). Used by leader_bcast.cc and leader_scatter.cc, while schedules are made.
// Thread safety: none.
#pragma once
#include <cstdint>
#include <vector>

#include "algorithms/node_tree.h"
#include "algorithms/nodes.h"

namespace coco::algorithms {

// Places of the ring.
inline constexpr std::int32_t kBcastRing = 4;

class BcastLeader {
  public:
    static constexpr std::int32_t kMostUnderWay = 64;

    // Requires: shape.rank leads its node.
    BcastLeader(const Shape& shape, const Nodes& nodes);

    std::int32_t segments() const { return shape_.segments; }
    std::int32_t nodes() const { return nodes_.count(); }
    std::int32_t node() const { return own_; }
    std::int32_t rank_at(std::int32_t node) const;  // that leads it

    // Starts a message of `blocks` segments; older ones are completed where too many would be under way.
    void send(std::int32_t to_node, std::int32_t first_segment, std::int32_t blocks);
    void receive(std::int32_t from_node, std::int32_t first_segment, std::int32_t blocks);
    std::int32_t started() const { return started_; }  // messages
    // Completes the first `messages` of those that were started.
    void complete_first(std::int32_t messages);

    // Puts a segment into the ring. Requires: it is there.
    void show(std::int32_t segment);
    // In the order in which they were shown.
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

// Along a tree or chain, segment by segment.
void pass_along(const NodeTree& tree, BcastLeader& leader);
// A part of the segments to each node, down the tree; then each part from its node to all. Requires: at least
// as many segments as nodes. leader_scatter.cc
void scatter_and_gather(const NodeTree& tree, BcastLeader& leader);

}  // namespace coco::algorithms
