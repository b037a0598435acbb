// SPDX-License-Identifier: BSD-3-Clause
//
// Every registry row, every exchange it serves, every small machine: three calls in a row must be right.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string_view>

#include "shapes.h"

using namespace coco;
using namespace coco::simulator;
using algorithms::Exchange;

namespace {

// With the address sanitizer, which makes each check ten times as long, fewer.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::int32_t kMostRanks = 13;
#elif defined(__has_feature)
constexpr std::int32_t kMostRanks = __has_feature(address_sanitizer) ? 13 : 33;
#else
constexpr std::int32_t kMostRanks = 33;
#endif
constexpr std::int32_t kMostSegments = 9;

void require_right(const std::string& what, const topology::NodeMap& map, const Calls& calls,
                   const Executor& executor = {}) {
    std::string fault = simulate(map, calls, executor).fault;
    INFO(what);
    REQUIRE(fault == "");
}

// Three calls from roots that change in between.
void check(const Row& row, const topology::NodeMap& map, std::int32_t root, std::int32_t segments,
           const Executor& executor = {}) {
    std::int32_t next = (root + 1) % map.ranks();
    Call first = make_call(*row.algorithm, row.exchange, map, root, segments, row.parameters);
    Call second = make_call(*row.algorithm, row.exchange, map, next, segments, row.parameters);
    require_right(to_text(row, map, root, segments), map, {first, second, first}, executor);
}

// In a bcast domains make no difference.
std::vector<topology::NodeMap> bcast_machines(const algorithms::Algorithm& algorithm, std::int32_t ranks) {
    if (algorithm.one_node()) return {topology::one_node(ranks)};
    return machines(algorithm, ranks);
}

std::vector<std::int32_t> roots(std::int32_t ranks) {
    if (ranks > 9) return {0, ranks / 2, ranks - 1};
    std::vector<std::int32_t> all;
    for (std::int32_t r = 0; r < ranks; ++r) all.push_back(r);
    return all;
}

}  // namespace

TEST_CASE("every exchange among all ranks is right on every machine", "[schedule]") {
    for (const Row& row : rows())
        for (std::int32_t ranks = 1; row.exchange != Exchange::bcast && ranks <= kMostRanks; ++ranks)
            for (const auto& map : machines(*row.algorithm, ranks)) check(row, map, 0, 1);
}

TEST_CASE("tiles as wide as a line of many ranks are right", "[schedule][long]") {
    for (const Row& row : rows())
        for (std::int32_t ranks : {64, 67, 72})
            if (row.algorithm->name == "tiled") check(row, topology::one_node(ranks), 0, 1);
}

TEST_CASE("two calls under way at once are right, in whatever order their ranks take them", "[schedule]") {
    for (std::int32_t ranks : {2, 3, 4, 6}) {
        std::vector<Call> calls;
        const topology::NodeMap nodes = topology::make_node_map({0, 0, 1, 1, 2, 2}, {0, 0, 0, 0, 0, 0});
        const topology::NodeMap map = ranks == 6 ? nodes : topology::one_node(ranks);
        for (const Row& row : rows())
            if (row.algorithm->one_node() == (ranks != 6))
                calls.push_back(make_call(*row.algorithm, row.exchange, map, 1,
                                          row.algorithm->segmented ? 5 : 1, row.parameters));
        for (std::size_t i = 0; i < calls.size(); ++i)
            for (std::size_t j = 0; j < calls.size(); ++j) {
                INFO(ranks << " ranks, calls " << i << " and " << j);
                const auto seed = static_cast<std::uint32_t>(i * calls.size() + j);
                REQUIRE(simulate_together(map, {{calls[i], calls[j]}, {calls[j], calls[i]}}, seed).fault ==
                        "");
            }
    }
}

TEST_CASE("every bcast is right from every root with any number of segments", "[schedule][long]") {
    for (const Row& row : rows())
        for (std::int32_t ranks = 1; row.exchange == Exchange::bcast && ranks <= kMostRanks; ++ranks)
            for (const auto& map : bcast_machines(*row.algorithm, ranks))
                for (std::int32_t root : roots(ranks))
                    for (std::int32_t n = 1; n <= (row.algorithm->segmented ? kMostSegments : 1); ++n)
                        check(row, map, root, n);
}

TEST_CASE("a bcast is right where leaders show their buffers instead of a ring", "[schedule][long]") {
    for (const Row& row : rows())
        for (std::int32_t ranks = 1; row.exchange == Exchange::bcast && ranks <= 9; ++ranks) {
            if (row.algorithm->one_node()) continue;
            std::vector<bool> all(static_cast<std::size_t>(ranks), true), some = all;
            for (std::size_t r = 0; r < some.size(); r += 2) some[r] = false;
            for (const auto& map : machines(*row.algorithm, ranks))
                for (std::int32_t root : roots(ranks))
                    for (std::int32_t n : {1, 3, 4, 5, 9})
                        for (const auto& aliased : {all, some})
                            check(row, map, root, n, {.aliased = aliased});
        }
}

TEST_CASE("an alltoall is right where ranks show their buffers to mates", "[schedule][long]") {
    std::set<std::string_view> with_left;
    for (const Row& row : rows())
        for (std::int32_t ranks = 2; row.exchange == Exchange::alltoall && ranks <= kMostRanks; ++ranks) {
            if (row.algorithm->one_node()) continue;
            std::vector<bool> all(static_cast<std::size_t>(ranks), true), some = all;
            for (std::size_t r = 0; r < some.size(); r += 2) some[r] = false;
            for (const auto& map : machines(*row.algorithm, ranks)) {
                const Call call = make_call(*row.algorithm, row.exchange, map, 0, 1, row.parameters);
                if (call.schedules[0].left_blocks != 0) with_left.insert(row.algorithm->name);
                for (const auto& aliased : {all, some}) check(row, map, 0, 1, {.aliased = aliased});
            }
        }
    CHECK(with_left == std::set<std::string_view>{"leader", "multileader", "node_aware", "sloavx", "split"});
}

TEST_CASE("exchanges are right where slots are filled anew on many uneven nodes", "[schedule][long]") {
    std::vector<std::uint64_t> nodes;
    std::uint64_t node = 0;
    for (const int size : {3, 2, 1, 1, 1, 1, 2, 3, 1, 3, 1}) {
        nodes.insert(nodes.end(), static_cast<std::size_t>(size), node);
        ++node;
    }
    const auto map = topology::make_node_map(nodes, std::vector<std::uint64_t>(nodes.size(), 0));
    for (const Row& row : rows())
        if (takes(*row.algorithm, algorithms::Parameter::window)) check(row, map, 0, 1);
}

TEST_CASE("a bcast to very many nodes keeps its messages within bounds", "[schedule][long]") {
    constexpr std::uint64_t kNodes = 150;
    std::vector<std::uint64_t> nodes;
    for (std::uint64_t r = 0; r < kNodes; ++r) nodes.push_back(r);
    auto map = topology::make_node_map(nodes, std::vector<std::uint64_t>(kNodes, 0));
    for (const Row& row : rows())
        for (std::int32_t radix : {2, 13, 20, 70, 1000}) {
            if (row.exchange != Exchange::bcast || row.algorithm->one_node() || row.parameters.radix != 2)
                continue;
            Row many = row;
            many.parameters.radix = radix;
            for (std::int32_t n : {1, 2, 3, 7}) check(many, map, 5, n);
            // A part for each node, and then some.
            if (row.parameters.route == algorithms::Route::scatter) check(many, map, 5, kNodes + 11);
        }
}

namespace {

// The many bcasts by leaders are mixed in base 2 only: all of them leave the same behind.
bool is_for_mix(const Row& row) { return row.exchange != Exchange::bcast || row.parameters.radix == 2; }

void mix(const topology::NodeMap& map, bool one_node, const std::vector<std::vector<bool>>& staged_ranks) {
    std::vector<Call> calls;
    for (const Row& row : rows())
        for (std::int32_t root : {0, 1})
            if (row.algorithm->one_node() == one_node && is_for_mix(row) &&
                (root == 0 || row.exchange == Exchange::bcast))
                calls.push_back(make_call(*row.algorithm, row.exchange, map, root,
                                          row.algorithm->segmented ? 6 : 1, row.parameters));
    for (const auto& staged : staged_ranks)
        for (std::size_t n = 0; n < calls.size() * calls.size() * calls.size(); ++n) {
            std::size_t i = n % calls.size(), j = n / calls.size() % calls.size();
            std::size_t k = n / calls.size() / calls.size();
            INFO(map.ranks() << " ranks, " << staged.size() << " entries in staged");
            require_right(std::to_string(i) + " " + std::to_string(j) + " " + std::to_string(k), map,
                          {calls[i], calls[j], calls[k]}, {.guarded = true, .staged = staged});
        }
}

}  // namespace

TEST_CASE("any three algorithms may follow each other, whoever stages", "[schedule][long]") {
    for (std::int32_t ranks : {2, 3, 5})
        mix(topology::one_node(ranks, 2), true, {{}, {true}, {false, true}, std::vector<bool>(5, true)});
    mix(topology::make_node_map({0, 0, 1, 2, 2}, {0, 0, 0, 0, 0}), false, {{}});
}

TEST_CASE("the registry says truly which areas of peers an algorithm touches", "[schedule]") {
    // That it touches no more is checked in every simulation; here that it does touch what it claims.
    for (const auto& algorithm : algorithms::registry()) {
        bool reads = false, writes = false;
        for (const Row& row : rows()) {
            if (row.algorithm != &algorithm) continue;
            auto map = topology::one_node(9);
            const Call call = make_call(algorithm, row.exchange, map, 0, 1, row.parameters);
            Verdict verdict = simulate(map, {call});
            reads |= verdict.read_peer_send;
            writes |= verdict.wrote_peer_recv;
        }
        INFO(algorithm.name);
        CHECK(reads == algorithm.reads_peer_send());
        CHECK(writes == algorithm.writes_peer_recv());
    }
}

TEST_CASE("ranks wait for no more than they must", "[schedule]") {
    // Morton: about 4 sqrt(P) waits instead of the 2 (P - 1) of two barriers.
    auto map = topology::one_node(64);
    for (const Row& row : rows()) {
        if (row.algorithm->name != "morton") continue;
        for (const auto& schedule : make_call(*row.algorithm, row.exchange, map).schedules) {
            std::int32_t waits = 0;
            for (const auto& s : schedule.steps)
                waits += s.act == schedule::Act::wait   ? s.count
                         : s.act == schedule::Act::copy ? s.after_source * s.count + s.after_target
                                                        : 0;
            CHECK(waits <= 4 * 8);
        }
    }
}
