// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/bundles.h"

#include <algorithm>
#include <tuple>

namespace coco::schedule {

Bundling::Bundling(const topology::NodeMap& map, std::int32_t rank, const Neighborhood& neighborhood,
                   bool personal)
    : map_(map), rank_(rank), near_(neighborhood), personal_(personal) {
    ranks_on_.resize(static_cast<std::size_t>(map.nodes()));
    for (std::int32_t r = 0; r < map.ranks(); ++r)
        ranks_on_[static_cast<std::size_t>(node_of(r))].push_back(r);
    auto is_other_mate = [&](std::int32_t to) {
        return to >= 0 && to != rank && node_of(to) == node_of(rank);
    };
    if (std::ranges::any_of(near_.destinations, is_other_mate))
        bundles_.staged_blocks = personal ? near_.send_blocks() : 1;
    bundles_.scratch_blocks = bundles_.staged_blocks;
}

std::int32_t Bundling::distance(std::int32_t from, std::int32_t to) const {
    auto nodes = static_cast<std::int32_t>(ranks_on_.size());
    return (to - from + nodes) % nodes;
}

// On `node`, one of the two, for what goes from node to node.
std::int32_t Bundling::leader_of(std::int32_t node, std::int32_t from, std::int32_t to) const {
    const auto& ranks = ranks_on_[static_cast<std::size_t>(node)];
    return ranks[static_cast<std::size_t>(distance(from, to) - 1) % ranks.size()];
}

bool Bundling::is_same_block(const Edge& a, const Edge& b) const {
    return a.sender == b.sender && (!personal_ || a.sent == b.sent);
}

Bundle& Bundling::append(std::vector<Bundle>& bundles, std::int32_t peer) {
    return bundles.emplace_back(Bundle{peer, bundles_.scratch_blocks, 0, {}});
}

Bundling::Mail Bundling::ask() const {
    Mail mail;
    const std::int32_t here = node_of(rank_);
    for (const Edge& edge : near_.incoming) {
        const std::int32_t from = node_of(edge.sender);
        if (from == here) continue;
        mail.letters.push_back({edge, -1, -1, -1});
        mail.to.push_back(leader_of(here, from, here));
    }
    return mail;
}

Bundling::Mail Bundling::assign(std::vector<Bundled> asked) {
    const std::int32_t here = node_of(rank_);
    std::ranges::sort(asked, {}, [&](const Bundled& b) {
        return std::tuple(distance(node_of(b.edge.sender), here), b.edge.sender, b.edge.sent, b.edge.receiver,
                          b.edge.received);
    });
    Mail mail;
    const Edge* last = nullptr;
    for (Bundled& block : asked) {
        const std::int32_t from = node_of(block.edge.sender);
        if (last == nullptr || node_of(last->sender) != from)
            append(bundles_.incoming, leader_of(from, from, here));
        const bool is_new = last == nullptr || !is_same_block(*last, block.edge);
        if (is_new) {
            ++bundles_.incoming.back().blocks;
            ++bundles_.scratch_blocks;
        }
        block.leader = rank_;
        block.index = bundles_.scratch_blocks - 1;
        block.turn = static_cast<std::int32_t>(bundles_.incoming.size()) - 1;
        mail.letters.push_back(block);
        mail.to.push_back(block.edge.receiver);
        last = &block.edge;
        if (!is_new) continue;
        mail.letters.push_back(block);
        mail.to.push_back(bundles_.incoming.back().peer);
    }
    return mail;
}

Bundling::Mail Bundling::lay_out(std::vector<Bundled> assigned) {
    const std::int32_t here = node_of(rank_);
    for (const Bundled& block : assigned)
        if (node_of(block.edge.receiver) == here) bundles_.taken.push_back(block);
    std::erase_if(assigned, [&](const Bundled& b) { return node_of(b.edge.receiver) == here; });
    // In the order in which the other leader wants them.
    std::ranges::sort(assigned, {}, [&](const Bundled& b) {
        return std::tuple(distance(here, node_of(b.edge.receiver)), b.index);
    });
    Mail mail;
    for (Bundled& block : assigned) {
        auto& outgoing = bundles_.outgoing;
        if (outgoing.empty() || outgoing.back().peer != block.leader) append(outgoing, block.leader);
        Bundle& bundle = outgoing.back();
        const std::int32_t filler = block.edge.sender;
        // A sender's blocks lie behind one another.
        if (filler != rank_ && (bundle.fillers.empty() || bundle.fillers.back() != filler))
            bundle.fillers.push_back(filler);
        ++bundle.blocks;
        block.leader = rank_;
        block.index = bundles_.scratch_blocks++;
        mail.letters.push_back(block);
        mail.to.push_back(filler);
    }
    return mail;
}

Bundles Bundling::finish(std::vector<Bundled> laid_out) {
    bundles_.filled = std::move(laid_out);
    // Its own bundles first, then those of the mates after it: not all begin with the same leader.
    auto turn_to = [&](std::int32_t leader) { return (leader - rank_ + map_.ranks()) % map_.ranks(); };
    std::ranges::sort(bundles_.filled, {},
                      [&](const Bundled& b) { return std::pair(turn_to(b.leader), b.index); });
    std::ranges::sort(bundles_.taken, {}, [&](const Bundled& b) {
        return std::tuple(b.turn, turn_to(b.leader), b.index, b.edge.received);
    });
    return std::move(bundles_);
}

}  // namespace coco::schedule
