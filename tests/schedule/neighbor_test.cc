// SPDX-License-Identifier: BSD-3-Clause
//
// Every registry row that serves neighbours, over graphs of all kinds on small machines.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <tuple>

#include "graphs.h"
#include "shapes.h"

using namespace coco;
using namespace coco::simulator;
using algorithms::Exchange;
using schedule::Edge;

namespace {

std::vector<Row> neighbor_rows() {
    std::vector<Row> rows;
    for (const auto& algorithm : algorithms::registry())
        if (serves(algorithm, algorithms::Collective::neighbor_alltoall))
            for (Exchange exchange : {Exchange::alltoall, Exchange::allgather})
                rows.push_back({&algorithm, exchange, {}});
    return rows;
}

// One node in one and in two domains, and nodes of unequal size; for what is made for nodes, more of those.
std::vector<topology::NodeMap> small_machines(const algorithms::Algorithm& algorithm, std::int32_t ranks) {
    if (!algorithm.one_node) return machines(algorithm, ranks);
    std::vector<topology::NodeMap> maps{topology::one_node(ranks)};
    if (ranks < 2) return maps;
    maps.push_back(topology::one_node(ranks, 2));
    std::vector<std::uint64_t> nodes, domains;
    for (std::int32_t r = 0; r < ranks; ++r) {
        nodes.push_back(static_cast<std::uint64_t>(r % 3 == 0));
        domains.push_back(static_cast<std::uint64_t>(r / 2 % 2));
    }
    maps.push_back(topology::make_node_map(nodes, domains));
    return maps;
}

void check(const Row& row, const topology::NodeMap& map, const Graph& graph, bool crossed,
           const Executor& executor = {}) {
    Call call = make_neighbor_call(*row.algorithm, row.exchange, map, neighborhoods_of(graph, crossed),
                                   row.parameters);
    INFO(to_text(row, map, 0, 1) << ", " << graph.name << (crossed ? ", crossed" : ""));
    std::string fault = simulate(map, {call, call, call}, executor).fault;
    REQUIRE(fault == "");
}

}  // namespace

TEST_CASE("every exchange among neighbours is right on graphs of all kinds", "[schedule]") {
    for (std::int32_t ranks = 1; ranks <= 17; ++ranks)
        for (const Graph& graph : graphs(ranks))
            for (const Row& row : neighbor_rows())
                for (const auto& map : small_machines(*row.algorithm, ranks))
                    for (bool crossed : {false, true}) check(row, map, graph, crossed);
}

TEST_CASE("every exchange among neighbours is right on every graph of four", "[schedule]") {
    auto one = topology::one_node(4, 2);
    auto two = topology::make_node_map({0, 1, 0, 1}, {0, 0, 0, 0});
    auto three = topology::make_node_map({0, 1, 1, 2}, {0, 0, 0, 0});
    for (const Graph& graph : graphs_of_four())
        for (const Row& row : neighbor_rows())
            for (const auto* map : {&one, &two, &three}) check(row, *map, graph, false);
}

TEST_CASE("neighbours may stage, and follow one another in any way", "[schedule]") {
    std::mt19937 random(4);
    auto map = topology::make_node_map({0, 0, 0, 1, 1}, {0, 0, 1, 0, 0});
    std::vector<Call> calls;
    for (const Graph& graph : {grid({5}, true), random_graph(5, 0.4, true, random)})
        for (const Row& row : neighbor_rows())
            calls.push_back(make_neighbor_call(*row.algorithm, row.exchange, map, neighborhoods_of(graph)));
    for (const auto& staged : {std::vector<bool>{}, {true, false, true, false, true}, std::vector(5, true)})
        for (const Call& a : calls)
            for (const Call& b : calls) {
                std::string fault = simulate(map, {a, b, a, b}, {.staged = staged}).fault;
                REQUIRE(fault == "");
            }
}

TEST_CASE("curves give every edge of a node to one rank, in shares of equal weight", "[schedule]") {
    std::mt19937 random(7);
    std::uint64_t (*const heavy)(const Edge&) = [](const Edge& edge) -> std::uint64_t {
        return edge.sender < 3 ? 100 : 1;
    };
    for (std::int32_t ranks : {1, 2, 5, 8, 13})
        for (const auto& map : small_machines(*algorithms::find("naive"), ranks))
            for (auto cut : {schedule::Cut::curve, schedule::Cut::domain_curves})
                for (bool unequal : {false, true}) {
                    Graph graph = random_graph(ranks, 0.5, true, random);
                    auto all = neighborhoods_of(graph);
                    auto shares = shares_of(map, all, cut, unequal ? heavy : nullptr);
                    std::vector<Edge> wanted, dealt;
                    std::map<std::int32_t, std::vector<std::uint64_t>> by_node;
                    for (std::size_t r = 0; r < all.size(); ++r) {
                        std::uint64_t weight = 0;
                        for (const Edge& e : all[r].incoming)
                            if (map.node[static_cast<std::size_t>(e.sender)] == map.node[r])
                                wanted.push_back(e);
                        for (const Edge& e : shares[r].edges) {
                            dealt.push_back(e);
                            weight += unequal ? heavy(e) : 1;
                            CHECK(map.node[static_cast<std::size_t>(e.sender)] == map.node[r]);
                            bool own_domain =
                                map.domain[static_cast<std::size_t>(e.receiver)] == map.domain[r];
                            CHECK((own_domain || cut == schedule::Cut::curve));
                        }
                        by_node[map.node[r]].push_back(weight);
                    }
                    auto key = [](const Edge& e) { return std::tuple(e.receiver, e.received); };
                    std::ranges::sort(wanted, {}, key);
                    std::ranges::sort(dealt, {}, key);
                    CHECK(wanted == dealt);
                    for (const auto& [node, weights] : by_node) {
                        if (cut != schedule::Cut::curve) continue;
                        auto [least, most] = std::ranges::minmax(weights);
                        CHECK(most - least <= (unequal ? 200u : 1u));
                    }
                }
}

TEST_CASE("two nodes with edges exchange one message, with each block once", "[schedule]") {
    using NodePair = std::pair<std::int32_t, std::int32_t>;
    const auto& aggregate = *algorithms::find("aggregate");
    for (std::int32_t ranks : {2, 5, 8, 13})
        for (const auto& map : machines(aggregate, ranks))
            for (const Graph& graph : graphs(ranks))
                for (Exchange exchange : {Exchange::alltoall, Exchange::allgather}) {
                    const bool personal = exchange == Exchange::alltoall;
                    auto node_of = [&](std::int32_t r) { return map.node[static_cast<std::size_t>(r)]; };
                    auto all = neighborhoods_of(graph);
                    std::map<NodePair, std::set<std::pair<std::int32_t, std::int32_t>>> owed;
                    for (const auto& near : all)
                        for (const Edge& e : near.incoming)
                            if (NodePair pair{node_of(e.sender), node_of(e.receiver)};
                                pair.first != pair.second)
                                owed[pair].insert({e.sender, personal ? e.sent : 0});
                    std::map<NodePair, std::vector<std::int32_t>> wanted, sent;
                    for (const auto& [pair, blocks] : owed)
                        wanted[pair] = {static_cast<std::int32_t>(blocks.size())};
                    Call call = make_neighbor_call(aggregate, exchange, map, all);
                    for (std::int32_t r = 0; r < ranks; ++r)
                        for (const auto& step : call.schedules[static_cast<std::size_t>(r)].steps)
                            if (step.act == schedule::Act::send)
                                sent[{node_of(r), node_of(step.peer())}].push_back(step.count);
                    INFO(to_text({&aggregate, exchange, {}}, map, 0, 1) << ", " << graph.name);
                    REQUIRE(sent == wanted);
                }
}
