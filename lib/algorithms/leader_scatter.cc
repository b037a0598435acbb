// SPDX-License-Identifier: BSD-3-Clause
//
// Scatter and allgather between the leaders of a bcast (van de Geijn; Thakur, Rabenseifner, Gropp 2005). Each
// node gets a part of the segments. The parts go down the tree: each child gets, in one message, the parts of
// all nodes below it. Then every leader sends its part to all others, pairwise, but not to those through
// which the part came down, so that nobody sends to the root. The root sends about twice the buffer, however
// many nodes there are, and no leader sends more than that.
//
// A leader shows its mates the segments that it has once the messages that it can start are under way.
#include "algorithms/exchange.h"
#include "algorithms/leader_bcast.h"
#include "base/check.h"
#include "base/index.h"
#include "topology/share.h"

namespace coco::algorithms {
namespace {

using schedule::Place;

// The participants are the nodes, and their bundles are the parts.
class PartCourier final : public Courier {
  public:
    PartCourier(const NodeTree& tree, BcastLeader& leader) : tree_(tree), leader_(leader) {
        for (std::int32_t part = leader.node(); part < tree.end(leader.node()); ++part)
            unshown_.push_back(part);
    }

    std::int32_t first_of(std::int32_t part) const { return base::number(share(part).first); }
    std::int32_t count_of(std::int32_t part) const { return base::number(share(part).count); }

    Place outgoing(std::int32_t) override { return wanted(leader_.node()); }
    Place wanted(std::int32_t from) override { return {0, schedule::Area::recv, first_of(from)}; }
    bool is_ring() const override { return false; }
    // A pairwise gather needs neither new scratch nor copies.
    Place new_scratch(std::int32_t) override { __builtin_trap(); }
    void copy(Place, Place, std::int32_t) override { __builtin_trap(); }
    void send(std::int32_t to, Place first, std::int32_t blocks) override {
        if (!has(to, leader_.node())) leader_.send(to, first.index, blocks);
        started_until_.push_back(leader_.started());
    }
    void receive(std::int32_t from, Place first, std::int32_t blocks) override {
        if (!has(leader_.node(), from)) leader_.receive(from, first.index, blocks);
        started_until_.push_back(leader_.started());
    }
    void complete(std::int32_t left) override {
        show_new();
        COCO_CHECK(left >= 0 && base::index(left) <= started_until_.size(),
                   "no more messages are left than were started");
        std::size_t gone = started_until_.size() - base::index(left);
        if (gone != 0) leader_.complete_first(started_until_[gone - 1]);
    }
    void arrived(std::int32_t from, Place) override {
        if (!has(leader_.node(), from)) unshown_.push_back(from);
    }
    void show_new() {
        for (std::int32_t part : unshown_)
            for (std::int32_t i = 0; i < count_of(part); ++i) leader_.show(first_of(part) + i);
        unshown_.clear();
    }

  private:
    topology::Share share(std::int32_t part) const {
        COCO_CHECK(part >= 0 && part < tree_.nodes(), "there is a part for each node");
        return topology::share_of(leader_.segments(), tree_.nodes(), part);
    }
    // Whether the node has had the part since the scatter.
    bool has(std::int32_t node, std::int32_t part) const { return part >= node && part < tree_.end(node); }

    const NodeTree& tree_;
    BcastLeader& leader_;
    std::vector<std::int32_t> unshown_;  // parts that have come and were not shown yet
    // For each message of the exchange, sent or left out: how many messages were started up to it.
    std::vector<std::int32_t> started_until_;
};

void scatter(const NodeTree& tree, const PartCourier& parts, BcastLeader& leader) {
    // This many messages may be under way when the exchange begins, which has a window of its own.
    constexpr std::int32_t kMost = BcastLeader::kMostUnderWay / 2;
    auto blocks_below = [&](std::int32_t node) {
        std::int32_t last = tree.end(node) - 1;
        return parts.first_of(last) + parts.count_of(last) - parts.first_of(node);
    };
    std::int32_t own = leader.node();
    if (own != 0) {
        leader.receive(tree.parent(own), parts.first_of(own), blocks_below(own));
        leader.complete_first(leader.started());
    }
    for (std::int32_t child : tree.children(own)) {
        leader.complete_first(leader.started() - kMost + 1);
        leader.send(child, parts.first_of(child), blocks_below(child));
    }
}

}  // namespace

void scatter_and_gather(const NodeTree& tree, BcastLeader& leader) {
    COCO_CHECK(tree.nodes() == leader.nodes(), "the tree of a bcast has all nodes");
    COCO_CHECK(leader.segments() >= tree.nodes(), "each node gets a part of the segments");
    PartCourier parts(tree, leader);
    scatter(tree, parts, leader);
    Participants all;
    for (std::int32_t node = 0; node < tree.nodes(); ++node) {
        all.rank.push_back(leader.rank_at(node));
        all.weight.push_back(parts.count_of(node));
    }
    all.me = leader.node();
    all.personal = false;
    exchange_pairwise(all, parts);
    parts.show_new();
}

}  // namespace coco::algorithms
