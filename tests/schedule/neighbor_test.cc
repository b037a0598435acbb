// SPDX-License-Identifier: BSD-3-Clause
//
// Every registry row that serves neighbours, over graphs of all kinds on small machines.
#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
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

// With all values of their parameters that are worth a trial.
std::vector<algorithms::Parameters> parameters_of(const algorithms::Algorithm& algorithm) {
    if (algorithm.needs_bundles()) return {{}, {.leaders = 1}, {.leaders = 2}, {.leaders = 3}};
    if (!takes(algorithm, algorithms::Parameter::threshold)) return {{}};
    return {{.threshold = 1, .depth = 1},
            {.threshold = 2, .depth = 1},
            {.threshold = 4, .depth = 1},
            {.threshold = 2, .depth = 2},
            {.threshold = 1, .depth = 0}};
}

std::vector<Row> neighbor_rows() {
    std::vector<Row> rows;
    for (const auto& algorithm : algorithms::registry())
        if (serves(algorithm, algorithms::Collective::neighbor_alltoall))
            for (Exchange exchange : {Exchange::alltoall, Exchange::allgather})
                for (const auto& parameters : parameters_of(algorithm))
                    rows.push_back({&algorithm, exchange, parameters});
    return rows;
}

// One node in one and in two domains, and nodes of unequal size; for what is made for nodes, more of those.
std::vector<topology::NodeMap> small_machines(const algorithms::Algorithm& algorithm, std::int32_t ranks) {
    if (!algorithm.one_node()) return machines(algorithm, ranks);
    std::vector<topology::NodeMap> maps{topology::one_node(ranks)};
    if (ranks < 2) return maps;
    maps.push_back(topology::one_node(ranks, 2));
    std::vector<std::uint64_t> nodes, domains, alone;
    for (std::int32_t r = 0; r < ranks; ++r) {
        alone.push_back(static_cast<std::uint64_t>(r));
        nodes.push_back(static_cast<std::uint64_t>(r % 3 == 0));
        domains.push_back(static_cast<std::uint64_t>(r / 2 % 2));
    }
    maps.push_back(topology::make_node_map(nodes, domains));
    maps.push_back(topology::make_node_map(alone, alone));
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

TEST_CASE("every exchange among neighbours is right on graphs of all kinds", "[schedule][long][neighbors]") {
    for (std::int32_t ranks = 1; ranks <= 17; ++ranks)
        for (const Graph& graph : graphs(ranks))
            for (const Row& row : neighbor_rows())
                for (const auto& map : small_machines(*row.algorithm, ranks))
                    for (bool crossed : {false, true}) check(row, map, graph, crossed);
}

TEST_CASE("every exchange among neighbours is right on every graph of four", "[schedule][long][neighbors]") {
    auto one = topology::one_node(4, 2);
    auto two = topology::make_node_map({0, 1, 0, 1}, {0, 0, 0, 0});
    auto three = topology::make_node_map({0, 1, 1, 2}, {0, 0, 0, 0});
    auto four = topology::make_node_map({0, 1, 2, 3}, {0, 0, 0, 0});
    for (const Graph& graph : graphs_of_four())
        for (const Row& row : neighbor_rows())
            for (const auto* map : {&one, &two, &three, &four}) check(row, *map, graph, false);
}

namespace {

// Calls of these rows on one communicator of five, two by two in turn.
void check_in_turn(const topology::NodeMap& map, const std::vector<Row>& rows) {
    std::mt19937 random(4);
    std::vector<Call> calls;
    for (const Graph& graph : {grid({5}, true), random_graph(5, 0.4, true, random)})
        for (const Row& row : rows)
            calls.push_back(make_neighbor_call(*row.algorithm, row.exchange, map, neighborhoods_of(graph),
                                               row.parameters));
    for (const auto& staged : {std::vector<bool>{}, {true, false, true, false, true}, std::vector(5, true)})
        for (const Call& a : calls)
            for (const Call& b : calls) {
                std::string fault = simulate(map, {a, b, a, b}, {.staged = staged}).fault;
                REQUIRE(fault == "");
            }
}

}  // namespace

TEST_CASE("neighbours may stage, and follow one another in any way", "[schedule][long][neighbors]") {
    check_in_turn(topology::make_node_map({0, 0, 0, 1, 1}, {0, 0, 1, 0, 0}), neighbor_rows());
}

TEST_CASE("nodes that combine and nodes that do not follow one another in any way",
          "[schedule][long][neighbors]") {
    std::vector<Row> rows = neighbor_rows();
    std::erase_if(rows, [](const Row& row) { return !row.algorithm->needs_bundles(); });
    // Three nodes: each two of them have the third in common.
    check_in_turn(topology::make_node_map({0, 1, 2, 0, 1}, {0, 0, 0, 0, 0}), rows);
}

namespace {

topology::NodeMap all_alone(std::int32_t ranks) {
    std::vector<std::uint64_t> alone(static_cast<std::size_t>(ranks));
    for (std::size_t r = 0; r < alone.size(); ++r) alone[r] = r;
    return topology::make_node_map(alone, alone);
}

// How many steps of a kind a rank has, at most.
std::int64_t most_steps(const Call& call, schedule::Act act) {
    std::int64_t most = 0;
    for (const auto& schedule : call.schedules)
        most = std::max(most, static_cast<std::int64_t>(std::ranges::count_if(
                                  schedule.steps, [act](const auto& step) { return step.act == act; })));
    return most;
}
std::int64_t most_sent(const Call& call) { return most_steps(call, schedule::Act::send); }
std::int64_t most_waits(const Call& call) { return most_steps(call, schedule::Act::complete); }

}  // namespace

TEST_CASE("who combines sends half as many messages and one", "[schedule][neighbors]") {
    const auto& combining = *algorithms::find("combining");
    constexpr std::int32_t kRanks = 32, kReceivers = 16;
    std::vector<Arc> arcs;
    for (std::int32_t to = 0; to < kReceivers; ++to)
        for (std::int32_t from = kReceivers; from < kRanks; ++from) arcs.push_back({from, to});
    const auto all = neighborhoods_of(from_arcs("from one half to the other", kRanks, arcs));
    const auto map = all_alone(kRanks);
    for (Exchange exchange : {Exchange::alltoall, Exchange::allgather}) {
        CHECK(most_sent(make_neighbor_call(combining, exchange, map, all)) == kReceivers / 2 + 1);
        CHECK(most_sent(make_neighbor_call(combining, exchange, map, all, {.threshold = 17})) == kReceivers);
        // 16, 8, 4, 2, 1: a partner each time, and the one that is left.
        auto deep = make_neighbor_call(combining, exchange, map, all, {.threshold = 1, .depth = 0});
        CHECK(most_sent(deep) == 5);
    }
}

namespace {

std::int32_t most_trades(const std::vector<schedule::Combining>& all) {
    std::size_t most = 0;
    for (const auto& one : all) most = std::max(most, one.sends.trades.size());
    return static_cast<std::int32_t>(most);
}

}  // namespace

TEST_CASE("trades that need nothing of one another are waited for at once", "[schedule][neighbors]") {
    const auto& combining = *algorithms::find("combining");
    std::mt19937 random(3);
    for (const Graph& graph : {random_graph(60, 0.5, false, random), moore({12, 10}, 2)}) {
        const auto all = neighborhoods_of(graph);
        const auto map = all_alone(graph.ranks());
        INFO(graph.name);
        for (Exchange exchange : {Exchange::alltoall, Exchange::allgather}) {
            CHECK(most_trades(combine(map, all, 2, 1)) > 2);
            CHECK(most_waits(make_neighbor_call(combining, exchange, map, all, {.threshold = 2})) == 2);
            const std::int32_t trades = most_trades(combine(map, all, 1, 0));
            auto deep = make_neighbor_call(combining, exchange, map, all, {.threshold = 1, .depth = 0});
            CHECK(most_waits(deep) < trades);
        }
    }
}

namespace {

using schedule::Cargo;
using schedule::Trade;

const Trade* find_trade(const schedule::Combining& one, std::int32_t partner, std::int32_t iteration) {
    for (const Trade& trade : one.sends.trades)
        if (trade.partner == partner && trade.iteration == iteration) return &trade;
    return nullptr;
}
bool carry_the_same(const std::vector<Cargo>& a, const std::vector<Cargo>& b) {
    return std::ranges::equal(
        a, b, [](const Cargo& x, const Cargo& y) { return x.rank == y.rank && x.loads == y.loads; });
}
// The highest level of the trades before this one that have brought something for these neighbours.
std::int32_t level_of(const schedule::Combining& one, const std::vector<Cargo>& given,
                      std::int32_t before = std::numeric_limits<std::int32_t>::max()) {
    std::int32_t level = 0;
    for (const Trade& trade : one.sends.trades)
        for (const Cargo& taken : trade.taken)
            if (trade.iteration < before &&
                std::ranges::any_of(given, [&](const Cargo& g) { return g.rank == taken.rank; }))
                level = std::max(level, trade.level);
    return level;
}

}  // namespace

TEST_CASE("partners agree on the level of a trade, which is above all that it needs",
          "[schedule][neighbors]") {
    std::mt19937 random(23);
    constexpr std::int32_t kRanks = 40;
    for (double density : {0.2, 0.6, 1.0})
        for (std::int32_t depth : {1, 2, 0}) {
            const auto all = combine(
                all_alone(kRanks), neighborhoods_of(random_graph(kRanks, density, false, random)), 1, depth);
            INFO(density << ", depth " << depth);
            for (std::int32_t r = 0; r < kRanks; ++r) {
                const auto& one = all[static_cast<std::size_t>(r)];
                std::set<std::int32_t> receivers;
                for (const Trade& trade : one.sends.trades) {
                    const auto& other = all[static_cast<std::size_t>(trade.partner)];
                    const Trade* same = find_trade(other, r, trade.iteration);
                    REQUIRE(same != nullptr);
                    CHECK(same->level == trade.level);
                    CHECK(carry_the_same(same->given, trade.taken));
                    CHECK(trade.level == 1 + std::max(level_of(one, trade.given, trade.iteration),
                                                      level_of(other, same->given, trade.iteration)));
                }
                for (const Cargo& cargo : one.sends.cargoes) {
                    CHECK(cargo.level == level_of(one, {cargo}));
                    CHECK(receivers.insert(cargo.rank).second);
                }
            }
        }
}

TEST_CASE("patterns are made in few rounds", "[schedule][neighbors]") {
    std::mt19937 random(11);
    for (auto [ranks, density] :
         {std::pair(60, 0.05), {60, 0.2}, {60, 0.5}, {60, 1.0}, {300, 0.1}, {1024, 0.03}})
        for (std::int32_t depth : {1, 0}) {
            int rounds = 0;
            combine(all_alone(ranks), neighborhoods_of(random_graph(ranks, density, false, random)), 4, depth,
                    &rounds);
            INFO(ranks << " ranks, " << density << ", depth " << depth);
            CHECK(rounds < 50);
        }
}

TEST_CASE("what one half of the ranks sends may be combined and the rest not", "[schedule][neighbors]") {
    const auto& combining = *algorithms::find("combining");
    constexpr std::int32_t kLayer = 5, kRanks = 3 * kLayer;
    std::mt19937 random(5);
    std::bernoulli_distribution is_edge(0.8);
    std::vector<Arc> arcs;
    for (std::int32_t from = 0; from < 2 * kLayer; ++from)
        for (std::int32_t i = 0; i < kLayer; ++i)
            if (is_edge(random)) arcs.push_back({from, (from / kLayer + 1) * kLayer + i});
    const auto all = neighborhoods_of(from_arcs("layers", kRanks, arcs));
    std::vector<bool> first(kLayer, true), second(2 * kLayer, false), both(2 * kLayer, true);
    std::fill(second.begin() + kLayer, second.end(), true);
    for (const auto& map : small_machines(combining, kRanks))
        for (Exchange exchange : {Exchange::alltoall, Exchange::allgather})
            for (const auto& straight : {first, second, both}) {
                Call call = make_neighbor_call(combining, exchange, map, all, {.threshold = 2}, straight);
                REQUIRE(simulate(map, {call, call, call}).fault == "");
            }
}

TEST_CASE("curves give every edge of a node to one rank, in shares of equal weight",
          "[schedule][neighbors]") {
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

TEST_CASE("two nodes with edges exchange one message, with each block once", "[schedule][neighbors]") {
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
