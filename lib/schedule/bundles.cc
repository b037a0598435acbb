// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/bundles.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "base/index.h"

namespace coco::schedule {
namespace {

std::int32_t places_after(std::int32_t rank, std::int32_t other, std::int32_t ranks) {
    COCO_CHECK(rank >= 0 && rank < ranks && other >= 0 && other < ranks,
               "a place on a ring is one of its places");
    return (other - rank + ranks) % ranks;
}

}  // namespace

Leaders::Leaders(const topology::NodeMap& map, std::int32_t leaders) : map_(map), leaders_(leaders) {
    COCO_CHECK(leaders >= 0, "a number of leaders is a count");
    ranks_on_.resize(base::index(map.nodes()));
    for (std::int32_t r = 0; r < map.ranks(); ++r) ranks_on_[base::index(node_of(r))].push_back(r);
}

std::int32_t Leaders::distance(std::int32_t from, std::int32_t to) const {
    return places_after(from, to, base::number(ranks_on_.size()));
}

std::int32_t Leaders::of(std::int32_t node, std::int32_t number) const {
    COCO_CHECK(number >= 0, "a bundle goes to another node");
    const auto& ranks = ranks_on_[base::index(node)];
    COCO_CHECK(!ranks.empty(), "each node has ranks");
    auto leaders = base::number(ranks.size());
    if (leaders_ != 0) leaders = std::min(leaders, leaders_);
    return ranks[base::index(number % leaders)];
}

Bundling::Bundling(const topology::NodeMap& map, std::int32_t rank, const Neighborhood& neighborhood,
                   bool personal, std::int32_t leaders)
    : leaders_(map, leaders),
      rank_(rank),
      own_node_(leaders_.node_of(rank)),
      neighborhood_(neighborhood),
      personal_(personal) {
    auto is_other_mate = [&](std::int32_t to) {
        return to >= 0 && to != rank && leaders_.node_of(to) == own_node_;
    };
    if (std::ranges::any_of(neighborhood_.destinations, is_other_mate))
        bundles_.staged_blocks = personal ? neighborhood_.send_blocks() : 1;
    bundles_.scratch_blocks = bundles_.staged_blocks;
}

bool Bundling::is_same_block(const Edge& a, const Edge& b) const {
    return a.sender == b.sender && (!personal_ || a.sent == b.sent);
}

Bundling::Mail Bundling::ask() const {
    Mail mail;
    for (const Edge& edge : neighborhood_.incoming) {
        COCO_CHECK(edge.receiver == rank_, "incoming edges end at the rank that knows them");
        const std::int32_t from = leaders_.node_of(edge.sender);
        if (from == own_node_) continue;
        mail.send({edge, -1, -1, -1}, leaders_.receiver(from, own_node_));
    }
    return mail;
}

Bundling::Mail Bundling::assign(std::vector<Bundled> asked) {
    std::ranges::sort(asked, {}, [&](const Bundled& b) {
        return std::tuple(leaders_.distance(leaders_.node_of(b.edge.sender), own_node_), b.edge.sender,
                          b.edge.sent, b.edge.receiver, b.edge.received);
    });
    Mail mail;
    const Edge* last = nullptr;
    for (Bundled& block : asked) {
        const std::int32_t from = leaders_.node_of(block.edge.sender);
        COCO_CHECK(leaders_.node_of(block.edge.receiver) == own_node_, "a leader receives for its own node");
        COCO_CHECK(leaders_.receiver(from, own_node_) == rank_,
                   "a leader is asked for the bundles that it receives");
        if (last == nullptr || leaders_.node_of(last->sender) != from) begin_incoming(from);
        const bool is_new = last == nullptr || !is_same_block(*last, block.edge);
        last = &block.edge;
        Bundle& bundle = bundles_.incoming.back();
        bundle.blocks += is_new;
        bundles_.scratch_blocks += is_new;
        block.leader = rank_;
        block.index = bundle.first + bundle.blocks - 1;
        block.turn = bundle.turn;
        if (is_new) mail.send(block, bundle.peer);
        mail.send(block, block.edge.receiver);
    }
    return mail;
}

void Bundling::begin_incoming(std::int32_t from) {
    const auto turn = base::number(bundles_.incoming.size());
    bundles_.incoming.push_back({leaders_.sender(from, own_node_), bundles_.scratch_blocks, 0, turn, {}});
}

Bundling::Mail Bundling::lay_out(std::vector<Bundled> assigned) {
    for (const Bundled& block : assigned)
        if (leaders_.node_of(block.edge.receiver) == own_node_) {
            COCO_CHECK(block.edge.receiver == rank_, "a receiver is told of its own blocks");
            bundles_.taken.push_back(block);
        }
    std::erase_if(assigned, [&](const Bundled& b) { return leaders_.node_of(b.edge.receiver) == own_node_; });
    // Sorted in the order in which the receiving leader wants the blocks.
    std::ranges::sort(assigned, {}, [&](const Bundled& b) {
        return std::tuple(leaders_.distance(own_node_, leaders_.node_of(b.edge.receiver)), b.index);
    });
    Mail mail;
    for (Bundled& block : assigned) {
        auto& outgoing = bundles_.outgoing;
        COCO_CHECK(leaders_.node_of(block.edge.sender) == own_node_, "a leader sends for its own node");
        COCO_CHECK(leaders_.sender(own_node_, leaders_.node_of(block.edge.receiver)) == rank_,
                   "a leader lays out the bundles that it sends");
        if (outgoing.empty() || outgoing.back().peer != block.leader)
            outgoing.push_back({block.leader, bundles_.scratch_blocks, 0, 0, {}});
        load(outgoing.back(), block.edge);
        block.leader = rank_;
        block.index = bundles_.scratch_blocks++;
        mail.send(block, block.edge.sender);
    }
    return mail;
}

void Bundling::load(Bundle& bundle, const Edge& edge) const {
    // The blocks of one sender come one after the other, so it is enough to compare with the last filler.
    if (edge.sender != rank_ && (bundle.fillers.empty() || bundle.fillers.back() != edge.sender))
        bundle.fillers.push_back(edge.sender);
    ++bundle.blocks;
}

Bundles Bundling::finish(std::vector<Bundled> laid_out) {
    for (const Bundled& block : laid_out)
        COCO_CHECK(block.edge.sender == rank_, "a sender is told of its own blocks");
    bundles_.filled = std::move(laid_out);
    const std::int32_t ranks = leaders_.ranks();
    std::ranges::sort(bundles_.filled, {}, [&](const Bundled& b) {
        return std::pair(places_after(rank_, b.leader, ranks), b.index);
    });
    // By turn, as bundles come; within a turn first from its own bundles, then from those of the ranks after
    // it, so that not all ranks begin with the same leader.
    std::ranges::sort(bundles_.taken, {}, [&](const Bundled& b) {
        return std::tuple(b.turn, places_after(rank_, b.leader, ranks), b.index, b.edge.received);
    });
    return std::move(bundles_);
}

}  // namespace coco::schedule
