// SPDX-License-Identifier: BSD-3-Clause
//
// The ranks by node, and how the ranks of a node fill and empty the bundles of their leaders. The bundle from
// node a to node b has a row for each rank of a (or of a team of a's ranks), and a row has a block for each
// rank of b. Called by the leader schemes. Thread safety: immutable once made.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <set>
#include <span>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/exchange.h"
#include "base/check.h"
#include "base/index.h"

namespace coco::algorithms {

// Adds waits for one milestone, at most once for each rank.
class Waits {
  public:
    Waits(std::int32_t self, schedule::Milestone milestone) : self_(self), milestone_(milestone) {}
    void await(schedule::Builder& steps, std::int32_t rank) {
        if (rank != self_ && met_.insert(rank).second) steps.wait(rank, milestone_);
    }

  private:
    std::int32_t self_;
    schedule::Milestone milestone_;
    std::set<std::int32_t> met_;
};

class Nodes {
  public:
    explicit Nodes(const Shape& shape);

    std::int32_t count() const { return base::number(ranks_.size()); }
    const std::vector<std::int32_t>& ranks_of(std::int32_t node) const {
        COCO_CHECK_DEAR(node >= 0 && node < count(), "a node with ranks is one of the nodes");
        return ranks_[base::index(node)];
    }
    std::int32_t size_of(std::int32_t node) const { return base::number(ranks_of(node).size()); }
    std::int32_t own() const { return own_; }  // the number of this rank's node
    // The node so many places behind this rank's, or before it, if negative.
    std::int32_t at_distance(std::int32_t distance) const {
        COCO_CHECK_DEAR(distance > -count() && distance < count(), "nodes go round once");
        return (own_ + count() + distance) % count();
    }
    std::int32_t own_size() const { return size_of(own_); }
    // Whether the ranks of a node are numbered one behind the other.
    bool is_a_row(std::int32_t node) const {
        return ranks_of(node).back() - ranks_of(node).front() + 1 == size_of(node);
    }
    // The ranks of this rank's node, itself included.
    const std::vector<std::int32_t>& own_ranks() const { return ranks_of(own_); }
    // The index of this rank in `ranks`. Requires: it is there.
    std::int32_t index_in(const std::vector<std::int32_t>& ranks) const;
    std::int32_t index_on_node() const { return index_in(own_ranks()); }

    // Team `number` of the `teams` teams into which the ranks of a node are divided. Requires: no more teams
    // than the smallest node has ranks.
    std::span<const std::int32_t> team(std::int32_t node, std::int32_t teams, std::int32_t number) const;
    std::int32_t smallest() const;  // the number of ranks of the smallest node

    // Copies this rank's blocks for `node` to row `row` of the bundle that lies at `bundle` in a leader's
    // scratch.
    void fill_row(schedule::Builder& steps, std::int32_t node, schedule::Place bundle,
                  std::int32_t row) const;
    // Copies this rank's blocks out of a bundle whose rows belong to `senders`. They are its column; in an
    // allgather they are all, and its own comes from its send buffer.
    void take_blocks(schedule::Builder& steps, std::span<const std::int32_t> senders,
                     schedule::Place bundle) const;
    // The exchange among the ranks of the node, in two parts. Before it raises kArrived, each rank leaves its
    // blocks in its scratch from index 0 on, one for each rank of the node. Later it takes its own blocks
    // from the others' scratch, after `waits` for each of them.
    void leave_for_mates(schedule::Builder& steps) const;
    void take_from_mates(schedule::Builder& steps, std::initializer_list<Waits*> waits) const;
    // Both parts at once, and the rank's own block, for schemes in which mates need nothing else of each
    // other before. In an allgather a rank leaves one block for all. left_within(): the blocks of scratch
    // that it takes.
    void exchange_within(schedule::Builder& steps) const;
    std::int32_t left_within() const {
        return own_size() == 1 ? 0 : shape_.exchange == Exchange::alltoall ? own_size() : 1;
    }

  private:
    const Shape& shape_;
    std::vector<std::vector<std::int32_t>> ranks_;
    std::int32_t own_;
};

// How far a rank is where several leaders of a node carry bundles. kFilled: its rows of all outgoing bundles
// are filled. kFirstBundle + i, raised by a leader: its i-th incoming bundle has come.
inline constexpr schedule::Milestone kFilled = 1, kFirstBundle = 2;

// The bcast of the leader scheme: leader_bcast.cc.
schedule::Schedule make_leader_bcast(const Shape& shape);

}  // namespace coco::algorithms
