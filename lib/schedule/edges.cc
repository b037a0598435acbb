// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/edges.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/index.h"
#include "topology/share.h"

namespace coco::schedule {
namespace {

bool is_mate(const topology::NodeMap& map, std::int32_t a, std::int32_t b) {
    COCO_CHECK(a >= 0 && a < map.ranks() && b >= 0 && b < map.ranks(), "edges join ranks of the map");
    return map.node[base::index(a)] == map.node[base::index(b)];
}

// The domains of a node, in the order in which its ranks name them.
std::vector<std::int32_t> domains_of(const topology::NodeMap& map, std::int32_t node) {
    std::vector<std::int32_t> domains;
    for (std::int32_t r : map.ranks_on_node(node)) {
        std::int32_t domain = map.domain[base::index(r)];
        if (std::ranges::find(domains, domain) == domains.end()) domains.push_back(domain);
    }
    return domains;
}

std::int32_t size_of(const std::vector<std::int32_t>& ranks) { return base::number(ranks.size()); }

// Requires: rank is in the group.
std::int32_t index_in(const std::vector<std::int32_t>& group, std::int32_t rank) {
    const auto at = std::ranges::lower_bound(group, rank);
    COCO_CHECK(at != group.end() && *at == rank, "a rank is in its group");
    return base::number(at - group.begin());
}

std::vector<std::int32_t> mates_touching(const topology::NodeMap& map, std::int32_t rank,
                                         std::span<const std::int32_t> ranks) {
    std::set<std::int32_t> touching;
    for (std::int32_t r : ranks)
        if (r >= 0 && r != rank && is_mate(map, r, rank)) touching.insert(r);
    return {touching.begin(), touching.end()};
}

}  // namespace

std::span<const Edge> Neighborhood::incoming_from(std::int32_t sender) const {
    auto first = std::ranges::lower_bound(incoming, sender, {}, &Edge::sender);
    auto last = std::find_if(first, incoming.end(), [&](const Edge& edge) { return edge.sender != sender; });
    return {first, last};
}

EdgeShare own_share(const topology::NodeMap& map, std::int32_t rank, const Neighborhood& neighborhood) {
    COCO_CHECK_DEAR(std::ranges::is_sorted(neighborhood.incoming, {}, &Edge::sender),
                    "incoming edges are sorted by sender");
    EdgeShare share{.edges = {}, .touching = mates_touching(map, rank, neighborhood.destinations)};
    auto take_from = [&](std::int32_t sender) {
        auto from = neighborhood.incoming_from(sender);
        share.edges.insert(share.edges.end(), from.begin(), from.end());
    };
    take_from(rank);
    for (std::int32_t peer : peers_nearest_first(map, rank))
        if (is_mate(map, peer, rank)) take_from(peer);
    return share;
}

CurveCut::CurveCut(const topology::NodeMap& map, Cut cut, std::int32_t rank) {
    COCO_CHECK(cut != Cut::own, "receivers copy their own edges without a curve");
    COCO_CHECK(rank >= 0 && rank < map.ranks(), "a rank that cuts a curve is in the map");
    std::int32_t node = map.node[base::index(rank)];
    if (cut == Cut::curve) {
        groups_.push_back(map.ranks_on_node(node));
        return;
    }
    for (std::int32_t n = 0; n < map.nodes(); ++n) steps_ = std::max(steps_, size_of(domains_of(map, n)));
    auto domains = domains_of(map, node);
    auto own = std::ranges::find(domains, map.domain[base::index(rank)]);
    std::rotate(domains.begin(), own, domains.end());
    for (std::int32_t domain : domains) groups_.push_back(map.ranks_in_domain(domain));
    COCO_CHECK(std::ssize(groups_) <= steps_, "no node has more curves than there are steps");
    COCO_CHECK_DEAR(std::ranges::binary_search(groups_[0], rank), "the first group is the own one");
}

Matrix CurveCut::matrix(std::int32_t step) const { return {size_of(groups_[0]), size_of(senders(step))}; }

CurveEdge CurveCut::place(const Edge& edge, std::uint64_t weight) const {
    std::int32_t step = 0;
    while (!std::ranges::binary_search(senders(step), edge.sender)) ++step;
    Cell cell{index_in(groups_[0], edge.receiver), index_in(senders(step), edge.sender)};
    return {edge, step, 0, morton_position(matrix(step), cell), weight};
}

std::int32_t CurveCut::gatherer_of(const CurveEdge& edge) const {
    auto member = topology::part_of(matrix(edge.step).cells(), size_of(groups_[0]), edge.position);
    return groups_[0][base::index(member)];
}

void CurveCut::sort(std::vector<CurveEdge>& edges) {
    std::ranges::sort(edges, [](const CurveEdge& a, const CurveEdge& b) {
        if (a.step != b.step) return a.step < b.step;
        return a.position != b.position ? a.position < b.position : a.edge.received < b.edge.received;
    });
}

std::vector<std::uint64_t> CurveCut::weights_of(std::span<const CurveEdge> gathered) const {
    std::vector<std::uint64_t> weights(base::index(steps_));
    for (const CurveEdge& edge : gathered) {
        COCO_CHECK(edge.step >= 0 && edge.step < steps_, "an edge is on one of the curves");
        weights[base::index(edge.step)] += edge.weight;
    }
    return weights;
}

std::vector<std::int32_t> CurveCut::copiers_of(std::span<const CurveEdge> gathered,
                                               std::span<const std::uint64_t> weights) const {
    const Ranks& group = groups_[0];
    COCO_CHECK_DEAR(std::ranges::is_sorted(gathered, {}, &CurveEdge::step),
                    "the edges to be dealt out are sorted");
    COCO_CHECK(weights.size() % base::index(steps_) == 0, "each rank tells a weight for each curve");
    COCO_CHECK(weights.size() / base::index(steps_) > base::index(group.back()),
               "all ranks tell their weights");
    auto weight_of = [&](std::int32_t rank, std::int32_t step) {
        return weights[base::index(rank) * base::index(steps_) + base::index(step)];
    };
    std::vector<std::int32_t> copiers;
    copiers.reserve(gathered.size());
    std::uint64_t before = 0, total = 0;
    for (std::size_t i = 0; i < gathered.size(); ++i) {
        std::int32_t step = gathered[i].step;
        if (i == 0 || step != gathered[i - 1].step) {
            before = total = 0;
            for (std::int32_t r : group) total += weight_of(r, step);
            for (std::int32_t r : group) {
                if (r == gatherer_of(gathered[i])) break;
                before += weight_of(r, step);
            }
        }
        // An edge belongs to the share in which its middle lies.
        std::uint64_t middle = 2 * before + gathered[i].weight;
        COCO_CHECK(middle < 2 * total, "the weight of a curve is that of all its edges");
        copiers.push_back(group[base::index(middle * group.size() / (2 * total))]);
        before += gathered[i].weight;
    }
    return copiers;
}

}  // namespace coco::schedule
