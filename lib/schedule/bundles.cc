// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/bundles.h"

#include <algorithm>
#include <tuple>

namespace coco::schedule {
namespace {

std::int32_t places_after(std::int32_t rank, std::int32_t other, std::int32_t ranks) {
    return (other - rank + ranks) % ranks;
}

}  // namespace

Leaders::Leaders(const topology::NodeMap& map, const Leading& leading) : map_(map), leading_(leading) {
    ranks_on_.resize(static_cast<std::size_t>(map.nodes()));
    for (std::int32_t r = 0; r < map.ranks(); ++r)
        ranks_on_[static_cast<std::size_t>(node_of(r))].push_back(r);
    for (const auto& ranks : ranks_on_) layers_ = std::max(layers_, static_cast<std::int32_t>(ranks.size()));
    if (leading.leaders != 0) layers_ = std::min(layers_, leading.leaders);
}

std::int32_t Leaders::distance(std::int32_t from, std::int32_t to) const {
    return places_after(from, to, static_cast<std::int32_t>(ranks_on_.size()));
}

std::int32_t Leaders::of(std::int32_t node, std::int32_t number) const {
    const auto& ranks = ranks_on_[static_cast<std::size_t>(node)];
    auto leaders = static_cast<std::int32_t>(ranks.size());
    if (leading_.leaders != 0) leaders = std::min(leaders, leading_.leaders);
    return ranks[static_cast<std::size_t>(number % leaders)];
}

std::int32_t Leaders::sender(std::int32_t from, std::int32_t to) const {
    return leading_.threshold != 0 ? in_layer(from, layer_of(to)) : of(from, distance(from, to) - 1);
}
std::int32_t Leaders::receiver(std::int32_t from, std::int32_t to) const {
    return of(to, distance(from, to) - 1);
}
std::int32_t Leaders::in_layer(std::int32_t node, std::int32_t layer) const { return of(node, layer); }

Bundling::Bundling(const topology::NodeMap& map, std::int32_t rank, const Neighborhood& neighborhood,
                   bool personal, const Leading& leading)
    : leaders_(map, leading),
      rank_(rank),
      own_node_(leaders_.node_of(rank)),
      neighborhood_(neighborhood),
      personal_(personal),
      combined_(leading.threshold != 0) {
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
        if (last == nullptr || leaders_.node_of(last->sender) != from) begin_incoming(from);
        const bool is_new = last == nullptr || !is_same_block(*last, block.edge);
        last = &block.edge;
        Bundle& bundle = bundles_.incoming.back();
        bundle.blocks += is_new;
        if (!combined_) bundles_.scratch_blocks += is_new;
        block.leader = rank_;
        block.index = (combined_ ? 0 : bundle.first) + bundle.blocks - 1;
        block.turn = bundle.turn;
        if (is_new) mail.send(block, bundle.peer);
        if (!combined_) mail.send(block, block.edge.receiver);
    }
    if (!combined_) return mail;
    bundles_.incoming.clear();
    numbered_ = std::move(asked);
    return mail;
}

void Bundling::begin_incoming(std::int32_t from) {
    const auto turn = static_cast<std::int32_t>(bundles_.incoming.size());
    bundles_.incoming.push_back({leaders_.sender(from, own_node_), bundles_.scratch_blocks, 0, turn, {}, {}});
}

Bundling::Mail Bundling::lay_out(std::vector<Bundled> assigned) {
    for (const Bundled& block : assigned)
        if (leaders_.node_of(block.edge.receiver) == own_node_) bundles_.taken.push_back(block);
    std::erase_if(assigned, [&](const Bundled& b) { return leaders_.node_of(b.edge.receiver) == own_node_; });
    // Sorted in the order in which the receiving leader wants the blocks.
    std::ranges::sort(assigned, {}, [&](const Bundled& b) {
        return std::tuple(leaders_.distance(own_node_, leaders_.node_of(b.edge.receiver)), b.index);
    });
    Mail mail;
    for (Bundled& block : assigned) {
        auto& outgoing = bundles_.outgoing;
        if (outgoing.empty() || outgoing.back().peer != block.leader)
            outgoing.push_back({block.leader, bundles_.scratch_blocks, 0, 0, {}, {}});
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
    if (personal_)
        bundle.loads = {{own_node_, bundle.blocks}};
    else
        bundle.loads.push_back({edge.sender, 1});
}

Bundles Bundling::finish(std::vector<Bundled> laid_out) {
    bundles_.filled = std::move(laid_out);
    for (const Bundle& bundle : bundles_.outgoing)
        bundles_.sends.cargoes.push_back({bundle.peer, bundle.loads});
    const std::int32_t ranks = leaders_.ranks();
    std::ranges::sort(bundles_.filled, {}, [&](const Bundled& b) {
        return std::pair(places_after(rank_, b.leader, ranks), b.index);
    });
    sort_taken(bundles_.taken, rank_, ranks);
    return std::move(bundles_);
}

void sort_taken(std::vector<Bundled>& taken, std::int32_t rank, std::int32_t ranks) {
    std::ranges::sort(taken, {}, [&](const Bundled& b) {
        return std::tuple(b.turn, places_after(rank, b.leader, ranks), b.index, b.edge.received);
    });
}

}  // namespace coco::schedule
