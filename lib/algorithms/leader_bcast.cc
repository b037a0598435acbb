// SPDX-License-Identifier: BSD-3-Clause
//
// The bcast of leader (its card is in leader.cc): from the root to the leaders of the other nodes, and on
// each node from the leader to its mates. The root leads its own node.
//
// Between nodes the segments go along a tree or a chain. In a tree a segment is everywhere after log_r N
// hops, but the root sends it up to (r - 1) log_r N times. In a chain each leader sends it once, but there
// are N - 1 hops. Unless the shape names one, the cheaper one is taken, in messages one after the other,
// which for S segments are S (children of the root) + depth - 1. A leader sends a segment on as soon as it
// has come, while it receives the next ones. The third way is in leader_scatter.cc. On a node the leader
// fills a ring in its scratch, as the root of segmented does. Its mates make the leader's schedule too, and
// find the order of the segments there.
//
// Milestones, as in segmented: a leader raises i when its i-th segment is in the ring (so kArrived for the
// first). Its mates raise i when they have taken it, as long as the leader will wait for that.
#include "algorithms/leader_bcast.h"

#include <algorithm>

#include "base/check.h"
#include "base/index.h"

namespace coco::algorithms {

using schedule::Area;
using schedule::Builder;
using schedule::Milestone;

BcastLeader::BcastLeader(const Shape& shape, const Nodes& nodes)
    : shape_(shape),
      nodes_(nodes),
      area_(shape.rank == shape.root ? Area::send : Area::recv),
      ring_(std::min(shape.segments, kBcastRing)),
      root_node_(shape.map->node[base::index(shape.root)]),
      own_((nodes.own() - root_node_ + nodes.count()) % nodes.count()) {
    COCO_CHECK(rank_at(own_) == shape.rank, "a leader of a bcast leads its node");
    if (nodes.own_size() > 1) steps_.scratch(ring_);
}

std::int32_t BcastLeader::rank_at(std::int32_t node) const {
    COCO_CHECK(node >= 0 && node < nodes_.count(), "a leader is of one of the nodes");
    return node == 0 ? shape_.root : nodes_.ranks_of((root_node_ + node) % nodes_.count())[0];
}

void BcastLeader::complete_first(std::int32_t messages) {
    COCO_CHECK(messages <= started_, "messages are completed that were started");
    if (messages <= completed_) return;
    steps_.complete(started_ - messages);
    completed_ = messages;
}

void BcastLeader::start() {
    COCO_CHECK(started_ - completed_ <= kMostUnderWay, "a bounded number of messages is under way");
    if (started_ - completed_ == kMostUnderWay) complete_first(completed_ + kMostUnderWay / 2 + 1);
    ++started_;
}

void BcastLeader::send(std::int32_t to_node, std::int32_t first_segment, std::int32_t blocks) {
    COCO_CHECK(first_segment >= 0 && blocks > 0 && blocks <= segments() - first_segment,
               "a message of a bcast has segments of its buffer");
    COCO_CHECK(to_node != own_, "a leader sends to another node");
    start();
    steps_.send(rank_at(to_node), own(first_segment), blocks);
}

void BcastLeader::receive(std::int32_t from_node, std::int32_t first_segment, std::int32_t blocks) {
    COCO_CHECK(first_segment >= 0 && blocks > 0 && blocks <= segments() - first_segment,
               "a message of a bcast has segments of its buffer");
    COCO_CHECK(from_node != own_, "a leader receives from another node");
    start();
    steps_.receive(rank_at(from_node), own(first_segment), blocks);
}

void BcastLeader::show(std::int32_t segment) {
    COCO_CHECK(segment >= 0 && segment < segments(), "a leader shows a segment of the buffer");
    auto turn = base::number(shown_.size());
    shown_.push_back(segment);
    if (nodes_.own_size() == 1) return;
    for (std::int32_t mate : nodes_.own_ranks())
        if (turn >= ring_ && mate != shape_.rank) steps_.wait(mate, static_cast<Milestone>(turn - ring_));
    steps_.copy(own(segment), {shape_.rank, Area::scratch, turn % ring_});
    steps_.raise(static_cast<Milestone>(turn));
}

schedule::Schedule BcastLeader::take() {
    COCO_CHECK(std::ssize(shown_) == segments(), "a leader shows each segment once");
    return steps_.complete().raise(schedule::kDone).take();
}

void pass_along(const NodeTree& tree, BcastLeader& leader) {
    COCO_CHECK(tree.nodes() == leader.nodes(), "the tree of a bcast has all nodes");
    const std::vector<std::int32_t> children = tree.children(leader.node());
    // The messages of four segments, received and sent on, may be under way at once.
    std::size_t messages = 4 * (children.size() + 1);
    std::int32_t ahead = messages <= base::index(BcastLeader::kMostUnderWay) ? 3 : 0;
    std::vector<std::int32_t> started_until;  // by segment: how many messages were started up to its own
    for (std::int32_t i = 0; i < leader.segments(); ++i) {
        std::int32_t end = std::min(i + 1 + ahead, leader.segments());
        while (leader.node() != 0 && base::number(started_until.size()) < end) {
            leader.receive(tree.parent(leader.node()), base::number(started_until.size()), 1);
            started_until.push_back(leader.started());
        }
        if (leader.node() != 0) leader.complete_first(started_until[base::index(i)]);
        for (std::int32_t child : children) leader.send(child, i, 1);
        leader.show(i);
    }
}

namespace {

std::int64_t messages_in_turn(const NodeTree& tree, std::int32_t segments) {
    return segments * static_cast<std::int64_t>(tree.children(0).size()) + tree.depth() - 1;
}

void send_over_nodes(const Shape& shape, BcastLeader& leader) {
    const NodeTree tree(leader.nodes(), shape.parameters.radix, false), chain(leader.nodes(), 2, true);
    Route route = shape.parameters.route;
    if (route == Route::scatter && shape.segments >= leader.nodes()) return scatter_and_gather(tree, leader);
    // A chain never brings a single segment sooner.
    bool is_cheaper = shape.segments > 1 &&
                      messages_in_turn(chain, shape.segments) < messages_in_turn(tree, shape.segments);
    bool by_chain = route == Route::chain || (route == Route::cheapest && is_cheaper);
    pass_along(by_chain ? chain : tree, leader);
}

schedule::Schedule follow(const Shape& shape, std::int32_t leader, const std::vector<std::int32_t>& shown) {
    COCO_CHECK(std::ssize(shown) == shape.segments, "a leader shows each segment once");
    Builder steps;
    std::int32_t ring = std::min(shape.segments, kBcastRing);
    for (std::int32_t i = 0; i < shape.segments; ++i) {
        steps.wait(leader, static_cast<Milestone>(i));
        steps.copy({leader, Area::scratch, i % ring}, {shape.rank, Area::recv, shown[base::index(i)]});
        if (i + ring < shape.segments) steps.raise(static_cast<Milestone>(i));
    }
    return steps.raise(schedule::kDone).take();
}

}  // namespace

schedule::Schedule make_leader_bcast(const Shape& shape) {
    COCO_CHECK(shape.root >= 0 && shape.root < shape.map->ranks(), "the root is one of the ranks");
    COCO_CHECK(shape.segments >= 1 && static_cast<schedule::Milestone>(shape.segments) < schedule::kUnread,
               "each segment has a milestone of its own");
    const Nodes nodes(shape);
    Shape leaders = shape;
    bool with_root = shape.map->node[base::index(shape.root)] == nodes.own();
    leaders.rank = with_root ? shape.root : nodes.own_ranks()[0];
    BcastLeader leader(leaders, nodes);
    send_over_nodes(leaders, leader);
    return shape.rank == leaders.rank ? leader.take() : follow(shape, leaders.rank, leader.shown());
}

}  // namespace coco::algorithms
