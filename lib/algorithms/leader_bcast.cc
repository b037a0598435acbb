// SPDX-License-Identifier: BSD-3-Clause
//
// The bcast of leader (its card is in leader.cc): from the root to the leaders of the other nodes, and on
// each node from the leader to its mates. The root leads its own node.
//
// Between nodes the segments go along a tree over the nodes, counted from the root's. In base r a node has
// sent to it by the one whose number lacks its lowest digit (r = 2: the binomial tree), so that one segment
// is everywhere after log_r N hops, but the root sends it up to (r - 1) log_r N times. A chain sends each
// once and is long. The cheaper one is taken, in messages one after the other: S (children of the root) +
// depth - 1, or S + N - 2. A leader sends a segment on as soon as it is there, while it receives the next
// ones. On a node the leader fills a ring in its scratch, as the root of segmented does.
//
// Milestones: as of segmented. A leader raises i when segment i is in the ring (so kArrived for the first),
// its mates raise i when they have taken segment i, as long as the leader will wait for that.
#include <algorithm>

#include "algorithms/nodes.h"

namespace coco::algorithms {
namespace {

using schedule::Area;
using schedule::Builder;
using schedule::Milestone;
using schedule::Place;

constexpr std::int32_t kRing = 4;
constexpr std::size_t kMostUnderWay = 64;

// The nodes by their distance from the root's, round.
class Tree {
  public:
    Tree(const Shape& shape, std::int32_t nodes) : nodes_(nodes), radix_(shape.parameters.radix) {
        auto fan_out = static_cast<std::int64_t>(children(0).size());
        std::int64_t tree = shape.segments * fan_out + depth() - 1, chain = shape.segments + nodes - 2;
        chain_ = shape.segments > 1 && chain < tree;
    }

    std::int32_t parent(std::int32_t node) const {
        if (chain_) return node - 1;
        std::int64_t weight = lowest_weight(node);
        return static_cast<std::int32_t>(node - node / weight % radix_ * weight);
    }
    // Those with the most nodes below them first.
    std::vector<std::int32_t> children(std::int32_t node) const {
        std::vector<std::int32_t> all;
        if (chain_ && node + 1 < nodes_) all.push_back(node + 1);
        for (std::int64_t w = lowest_weight(node) / radix_; !chain_ && w > 0; w /= radix_)
            for (std::int64_t child = node + w; child < std::min(node + w * radix_, nodes_); child += w)
                all.push_back(static_cast<std::int32_t>(child));
        return all;
    }

  private:
    // Of the lowest digit that is not 0; of the root's: one that no node has.
    std::int64_t lowest_weight(std::int32_t node) const {
        std::int64_t weight = 1;
        while (node == 0 ? weight < nodes_ : node / weight % radix_ == 0) weight *= radix_;
        return weight;
    }
    std::int64_t depth() const {
        std::int64_t digits = 0;
        for (std::int64_t w = lowest_weight(0); w > 1; w /= radix_) ++digits;
        return digits;
    }

    const std::int64_t nodes_;
    const std::int64_t radix_;
    bool chain_ = false;
};

class Leader {
  public:
    Leader(const Shape& shape, const Nodes& nodes)
        : shape_(shape),
          nodes_(nodes),
          area_(shape.rank == shape.root ? Area::send : Area::recv),
          ring_(std::min(shape.segments, kRing)),
          root_node_(shape.map->node[static_cast<std::size_t>(shape.root)]) {
        const Tree tree(shape, nodes.count());
        std::int32_t own = (nodes.own() - root_node_ + nodes.count()) % nodes.count();
        if (own != 0) parent_ = leader_at(tree.parent(own));
        for (std::int32_t child : tree.children(own)) children_.push_back(leader_at(child));
        // Of four segments, what is received and what is sent on may be under way at once.
        ahead_ = 4 * (children_.size() + 1) <= kMostUnderWay ? 3 : 0;
    }

    schedule::Schedule take() {
        bool shares = nodes_.own_size() > 1;
        if (shares) steps_.scratch(ring_);
        for (std::int32_t i = 0; i < shape_.segments; ++i) {
            if (parent_ >= 0) obtain(i);
            for (std::int32_t child : children_) {
                start();
                steps_.send(child, own(i), 1);
            }
            if (shares) show(i);
        }
        return steps_.complete().raise(schedule::kDone).take();
    }

  private:
    std::int32_t leader_at(std::int32_t distance) const {
        std::int32_t node = (root_node_ + distance) % nodes_.count();
        return distance == 0 ? shape_.root : nodes_.ranks_of(node)[0];
    }
    Place own(std::int32_t segment) const { return {shape_.rank, area_, segment}; }

    void complete_through(std::size_t message) {
        steps_.complete(static_cast<std::int32_t>(started_ - message - 1));
        completed_ = std::max(completed_, message + 1);
    }
    // Room for one more message.
    void start() {
        if (started_ - completed_ == kMostUnderWay) complete_through(completed_ + kMostUnderWay / 2);
        ++started_;
    }

    void obtain(std::int32_t segment) {
        for (std::int32_t end = std::min(segment + 1 + ahead_, shape_.segments); asked_ < end; ++asked_) {
            start();
            receives_.push_back(started_ - 1);
            steps_.receive(parent_, own(asked_), 1);
        }
        complete_through(receives_[static_cast<std::size_t>(segment)]);
    }

    // Puts a segment into the ring.
    void show(std::int32_t segment) {
        for (std::int32_t mate : nodes_.mates())
            if (segment >= ring_ && mate != shape_.rank)
                steps_.wait(mate, static_cast<Milestone>(segment - ring_));
        steps_.copy(own(segment), {shape_.rank, Area::scratch, segment % ring_});
        steps_.raise(static_cast<Milestone>(segment));
    }

    const Shape& shape_;
    const Nodes& nodes_;
    const Area area_;
    const std::int32_t ring_, root_node_;
    std::int32_t parent_ = -1;
    std::vector<std::int32_t> children_;
    std::int32_t ahead_;  // segments that are received before they are looked at
    std::int32_t asked_ = 0;
    std::size_t started_ = 0, completed_ = 0;  // messages
    std::vector<std::size_t> receives_;        // by segment: which message
    Builder steps_;
};

schedule::Schedule follow(const Shape& shape, std::int32_t leader) {
    Builder steps;
    std::int32_t ring = std::min(shape.segments, kRing);
    for (std::int32_t i = 0; i < shape.segments; ++i) {
        steps.wait(leader, static_cast<Milestone>(i));
        steps.copy({leader, Area::scratch, i % ring}, {shape.rank, Area::recv, i});
        if (i + ring < shape.segments) steps.raise(static_cast<Milestone>(i));
    }
    return steps.raise(schedule::kDone).take();
}

}  // namespace

schedule::Schedule make_leader_bcast(const Shape& shape) {
    const Nodes nodes(shape);
    bool with_root = shape.map->node[static_cast<std::size_t>(shape.root)] == nodes.own();
    std::int32_t leader = with_root ? shape.root : nodes.mates()[0];
    return shape.rank == leader ? Leader(shape, nodes).take() : follow(shape, leader);
}

}  // namespace coco::algorithms
