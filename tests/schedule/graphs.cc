// SPDX-License-Identifier: BSD-3-Clause
#include "graphs.h"

#include <algorithm>
#include <set>

namespace coco::simulator {

using schedule::CurveCut;
using schedule::CurveEdge;
using schedule::Edge;
using schedule::EdgeShare;
using schedule::Neighborhood;

namespace {

Graph empty(std::string name, std::int32_t ranks) {
    Graph graph{std::move(name), {}, {}};
    graph.destinations.resize(static_cast<std::size_t>(ranks));
    graph.sources = graph.destinations;
    return graph;
}

void add(Graph& graph, Arc arc) {
    graph.destinations[static_cast<std::size_t>(arc.first)].push_back(arc.second);
    graph.sources[static_cast<std::size_t>(arc.second)].push_back(arc.first);
}

// A rank's coordinates in a grid, the last running fastest.
std::vector<std::int32_t> coordinates(std::int32_t rank, const std::vector<std::int32_t>& extents) {
    std::vector<std::int32_t> at(extents.size());
    for (std::size_t d = extents.size(); d-- > 0; rank /= extents[d]) at[d] = rank % extents[d];
    return at;
}
// Below 0: outside.
std::int32_t rank_at(const std::vector<std::int32_t>& at, const std::vector<std::int32_t>& extents,
                     bool periodic) {
    std::int32_t rank = 0;
    for (std::size_t d = 0; d < extents.size(); ++d) {
        std::int32_t x = at[d], n = extents[d];
        if (!periodic && (x < 0 || x >= n)) return -1;
        rank = rank * n + (x % n + n) % n;
    }
    return rank;
}

std::int32_t product(const std::vector<std::int32_t>& extents) {
    std::int32_t ranks = 1;
    for (std::int32_t n : extents) ranks *= n;
    return ranks;
}

}  // namespace

Graph from_arcs(std::string name, std::int32_t ranks, const std::vector<Arc>& arcs) {
    Graph graph = empty(std::move(name), ranks);
    for (Arc arc : arcs) add(graph, arc);
    return graph;
}

Graph grid(const std::vector<std::int32_t>& extents, bool periodic) {
    std::string name = periodic ? "periodic grid" : "grid";
    for (std::int32_t n : extents) name += " " + std::to_string(n);
    Graph graph = empty(name, product(extents));
    for (std::int32_t r = 0; r < graph.ranks(); ++r)
        for (std::size_t d = 0; d < extents.size(); ++d)
            for (std::int32_t side : {-1, 1}) {
                auto at = coordinates(r, extents);
                at[d] += side;
                std::int32_t peer = rank_at(at, extents, periodic);
                graph.destinations[static_cast<std::size_t>(r)].push_back(peer);
                graph.sources[static_cast<std::size_t>(r)].push_back(peer);
            }
    return graph;
}

Graph moore(const std::vector<std::int32_t>& extents, std::int32_t radius) {
    std::string name = "moore " + std::to_string(radius) + " of";
    for (std::int32_t n : extents) name += " " + std::to_string(n);
    Graph graph = empty(name, product(extents));
    const std::vector<std::int32_t> box(extents.size(), 2 * radius + 1);
    for (std::int32_t r = 0; r < graph.ranks(); ++r)
        for (std::int32_t i = 0; i < product(box); ++i) {
            auto offset = coordinates(i, box), to = coordinates(r, extents), from = to;
            for (std::size_t d = 0; d < box.size(); ++d) {
                to[d] += offset[d] - radius;
                from[d] -= offset[d] - radius;
            }
            if (2 * i + 1 == product(box)) continue;  // the rank itself
            graph.destinations[static_cast<std::size_t>(r)].push_back(rank_at(to, extents, true));
            graph.sources[static_cast<std::size_t>(r)].push_back(rank_at(from, extents, true));
        }
    return graph;
}

Graph random_graph(std::int32_t ranks, double density, bool repeat, std::mt19937& random) {
    Graph graph = empty("random " + std::to_string(density) + (repeat ? ", repeated" : ""), ranks);
    std::bernoulli_distribution is_edge(density), twice(repeat ? 0.3 : 0.0);
    for (std::int32_t a = 0; a < ranks; ++a)
        for (std::int32_t b = 0; b < ranks; ++b)
            for (int n = is_edge(random) ? 1 + twice(random) : 0; n > 0; --n) add(graph, {a, b});
    for (auto* side : {&graph.destinations, &graph.sources})
        for (auto& list : *side) std::ranges::shuffle(list, random);
    return graph;
}

std::vector<Neighborhood> neighborhoods_of(const Graph& graph, bool crossed) {
    std::vector<Neighborhood> all(static_cast<std::size_t>(graph.ranks()));
    for (std::int32_t r = 0; r < graph.ranks(); ++r) {
        auto i = static_cast<std::size_t>(r);
        Neighborhood& near = all[i];
        near.destinations = graph.destinations[i];
        near.recv_blocks = static_cast<std::int32_t>(graph.sources[i].size());
        for (std::int32_t sender = 0; sender < graph.ranks(); ++sender) {
            std::vector<std::int32_t> sent, received;
            const auto& list = graph.destinations[static_cast<std::size_t>(sender)];
            for (std::size_t k = 0; k < list.size(); ++k)
                if (list[k] == r) sent.push_back(static_cast<std::int32_t>(k));
            for (std::size_t k = 0; k < graph.sources[i].size(); ++k)
                if (graph.sources[i][k] == sender) received.push_back(static_cast<std::int32_t>(k));
            if (crossed) std::ranges::reverse(received);
            for (std::size_t k = 0; k < sent.size(); ++k)
                near.incoming.push_back({sender, r, sent[k], received[k]});
        }
    }
    return all;
}

namespace {

// Cuts curves as comm does between ranks, without messages.
std::vector<EdgeShare> cut_curves(const topology::NodeMap& map, const std::vector<Neighborhood>& all,
                                  schedule::Cut cut, std::uint64_t (*weight)(const Edge&)) {
    const std::size_t ranks = all.size();
    std::vector<CurveCut> cuts;
    for (std::int32_t r = 0; r < map.ranks(); ++r) cuts.emplace_back(map, cut, r);
    std::vector<std::vector<CurveEdge>> gathered(ranks), copied(ranks);
    for (std::size_t r = 0; r < ranks; ++r)
        for (const Edge& edge : all[r].incoming) {
            if (map.node[static_cast<std::size_t>(edge.sender)] != map.node[r]) continue;
            CurveEdge placed = cuts[r].place(edge, weight != nullptr ? weight(edge) : 1);
            gathered[static_cast<std::size_t>(cuts[r].gatherer_of(placed))].push_back(placed);
        }
    std::vector<std::uint64_t> weights;
    for (std::size_t r = 0; r < ranks; ++r) {
        CurveCut::sort(gathered[r]);
        auto mine = cuts[r].weights_of(gathered[r]);
        weights.insert(weights.end(), mine.begin(), mine.end());
    }
    for (std::size_t r = 0; r < ranks; ++r) {
        auto copiers = cuts[r].copiers_of(gathered[r], weights);
        for (std::size_t i = 0; i < copiers.size(); ++i)
            copied[static_cast<std::size_t>(copiers[i])].push_back(gathered[r][i]);
    }
    std::vector<EdgeShare> shares(ranks);
    std::vector<std::set<std::int32_t>> touching(ranks);
    for (std::size_t r = 0; r < ranks; ++r) {
        CurveCut::sort(copied[r]);
        for (const CurveEdge& placed : copied[r]) {
            shares[r].edges.push_back(placed.edge);
            for (std::int32_t touched : {placed.edge.sender, placed.edge.receiver})
                touching[static_cast<std::size_t>(touched)].insert(static_cast<std::int32_t>(r));
        }
    }
    for (std::size_t r = 0; r < ranks; ++r) {
        touching[r].erase(static_cast<std::int32_t>(r));
        shares[r].touching.assign(touching[r].begin(), touching[r].end());
    }
    return shares;
}

}  // namespace

std::vector<EdgeShare> shares_of(const topology::NodeMap& map, const std::vector<Neighborhood>& all,
                                 schedule::Cut cut, std::uint64_t (*weight)(const Edge&)) {
    if (cut != schedule::Cut::own) return cut_curves(map, all, cut, weight);
    std::vector<EdgeShare> shares;
    for (std::int32_t r = 0; r < map.ranks(); ++r)
        shares.push_back(schedule::own_share(map, r, all[static_cast<std::size_t>(r)]));
    return shares;
}

namespace {

// By rank, what all have sent it.
std::vector<std::vector<schedule::Bundled>> deliver(const std::vector<schedule::Bundling::Mail>& mail) {
    std::vector<std::vector<schedule::Bundled>> came(mail.size());
    for (const auto& sent : mail)
        for (std::size_t i = 0; i < sent.letters.size(); ++i)
            came[static_cast<std::size_t>(sent.to[i])].push_back(sent.letters[i]);
    return came;
}

// Takes makers through rounds of letters, as comm does.
template <class Maker>
int go_rounds(std::vector<Maker>& makers) {
    int rounds = 0;
    for (; !makers.front().done(); ++rounds) {
        std::vector<std::vector<schedule::Letter>> inbox(makers.size());
        for (std::size_t r = 0; r < makers.size(); ++r)
            for (schedule::Letter& letter : makers[r].speak())
                inbox[static_cast<std::size_t>(letter.rank)].push_back(
                    {static_cast<std::int32_t>(r), std::move(letter.words)});
        for (std::size_t r = 0; r < makers.size(); ++r) makers[r].hear(inbox[r]);
        bool more = std::ranges::any_of(makers, [](const auto& maker) { return maker.wants_more(); });
        for (auto& maker : makers) maker.turn(more);
    }
    return rounds;
}

}  // namespace

std::vector<schedule::Bundles> bundles_of(const topology::NodeMap& map, const std::vector<Neighborhood>& all,
                                          bool personal, std::int32_t leaders) {
    std::vector<schedule::Bundling> ranks;
    std::vector<schedule::Bundling::Mail> mail;
    for (std::size_t r = 0; r < all.size(); ++r)
        mail.push_back(
            ranks.emplace_back(map, static_cast<std::int32_t>(r), all[r], personal, leaders).ask());
    auto came = deliver(mail);
    for (std::size_t r = 0; r < all.size(); ++r) mail[r] = ranks[r].assign(came[r]);
    came = deliver(mail);
    for (std::size_t r = 0; r < all.size(); ++r) mail[r] = ranks[r].lay_out(came[r]);
    came = deliver(mail);
    std::vector<schedule::Bundles> bundles;
    for (std::size_t r = 0; r < all.size(); ++r) bundles.push_back(ranks[r].finish(came[r]));
    return bundles;
}

std::vector<schedule::Combining> combine(const topology::NodeMap& map, const std::vector<Neighborhood>& all,
                                         std::int32_t threshold, std::int32_t depth, int* rounds) {
    std::vector<schedule::CombiningMaker> makers;
    for (std::int32_t r = 0; r < map.ranks(); ++r)
        makers.emplace_back(map, r, all[static_cast<std::size_t>(r)], threshold, depth);
    const int gone = go_rounds(makers);
    if (rounds != nullptr) *rounds += gone;
    std::vector<schedule::Combining> made;
    for (auto& maker : makers) made.push_back(maker.take());
    return made;
}

std::vector<Graph> graphs(std::int32_t ranks) {
    std::mt19937 random(static_cast<std::mt19937::result_type>(ranks));
    std::vector<Graph> all{empty("no edges", ranks), grid({ranks}, true), grid({ranks}, false)};
    for (std::int32_t n = 2; n * n <= ranks; ++n)
        if (ranks % n == 0)
            for (bool periodic : {true, false}) all.push_back(grid({n, ranks / n}, periodic));
    if (ranks % 4 == 0) all.push_back(grid({2, 2, ranks / 4}, true));
    all.push_back(grid({1, ranks, 1}, true));
    all.push_back(moore({ranks}, 2));
    if (ranks % 3 == 0) all.push_back(moore({3, ranks / 3}, 1));
    std::vector<Arc> star, back;
    for (std::int32_t r = 1; r < ranks; ++r) {
        star.push_back({0, r});
        back.push_back({r, ranks / 2});
    }
    all.push_back(from_arcs("star out", ranks, star));
    all.push_back(from_arcs("star in, and itself", ranks, back));
    for (double density : {0.05, 0.2, 0.5, 0.8})
        for (bool repeat : {false, true}) all.push_back(random_graph(ranks, density, repeat, random));
    return all;
}

std::vector<Graph> graphs_of_four() {
    std::vector<Arc> pairs;
    for (std::int32_t a = 0; a < 4; ++a)
        for (std::int32_t b = 0; b < 4; ++b)
            if (a != b) pairs.push_back({a, b});
    std::vector<Graph> all;
    for (unsigned bits = 0; bits < 1u << pairs.size(); ++bits) {
        std::vector<Arc> arcs;
        for (std::size_t i = 0; i < pairs.size(); ++i)
            if (bits >> i & 1) arcs.push_back(pairs[i]);
        all.push_back(from_arcs("of four, number " + std::to_string(bits), 4, arcs));
    }
    return all;
}

}  // namespace coco::simulator
