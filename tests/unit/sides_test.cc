// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/sides.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

using namespace coco::schedule;

namespace {

using Edges = std::vector<std::pair<int, int>>;  // from, to

// The sides that each rank knows by its own edges.
std::vector<Sides> known_by_each(std::int32_t ranks, const Edges& edges) {
    std::vector<Neighborhood> graphs(static_cast<std::size_t>(ranks));
    for (auto [from, to] : edges) {
        Neighborhood& sender = graphs[static_cast<std::size_t>(from)];
        Neighborhood& receiver = graphs[static_cast<std::size_t>(to)];
        receiver.incoming.push_back({from, to, sender.send_blocks(), receiver.recv_blocks++});
        sender.destinations.push_back(to);
        sender.destinations.push_back(-1);  // and a border
    }
    std::vector<Sides> known;
    for (std::int32_t r = 0; r < ranks; ++r)
        known.push_back(sides_of(r, ranks, graphs[static_cast<std::size_t>(r)]));
    return known;
}

// Joined in a random order, as a tree, as a library may do it.
Sides joined(std::vector<Sides> known, std::mt19937& random) {
    while (known.size() > 1) {
        std::shuffle(known.begin(), known.end(), random);
        join_sides(known.back(), known[0]);
        known.pop_back();
    }
    return known[0];
}

// Whether, given any sizes that no edge forbids, all ranks would see the same larger one: sizes are tried
// that are unlike wherever they may be.
bool agree_by_trial(std::int32_t ranks, const Edges& edges, std::mt19937& random) {
    for (int trial = 0; trial < 20; ++trial) {
        std::vector<int> size(2 * static_cast<std::size_t>(ranks)), seen(size.size());
        for (int& s : size) s = static_cast<int>(random() % 1000000);
        for (bool changed = true; changed;) {
            changed = false;
            for (auto [from, to] : edges) {
                int &send = size[2 * static_cast<std::size_t>(from)],
                    &recv = size[2 * static_cast<std::size_t>(to) + 1];
                changed = changed || send != recv;
                send = recv = std::min(send, recv);
            }
        }
        for (auto [from, to] : edges)
            seen[2 * static_cast<std::size_t>(from)] = seen[2 * static_cast<std::size_t>(to) + 1] = 1;
        std::vector<int> largest(static_cast<std::size_t>(ranks), -1);
        for (std::size_t side = 0; side < size.size(); ++side)
            if (seen[side]) largest[side / 2] = std::max(largest[side / 2], size[side]);
        for (int one : largest)
            if (one != largest[0] || one < 0) return false;
    }
    return true;
}

bool agree(std::int32_t ranks, const Edges& edges) {
    std::mt19937 random(7);
    return groups_of_all(joined(known_by_each(ranks, edges), random)) != 0;
}

Edges grid(int rows, int columns, bool periodic) {
    Edges edges;
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c)
            for (auto [dr, dc] : {std::pair(1, 0), {-1, 0}, {0, 1}, {0, -1}}) {
                int row = r + dr, column = c + dc;
                bool inside = row >= 0 && row < rows && column >= 0 && column < columns;
                if (!inside && !periodic) continue;
                edges.emplace_back(r * columns + c,
                                   (row + rows) % rows * columns + (column + columns) % columns);
            }
    return edges;
}

Edges ring(int ranks) {
    Edges edges;
    for (int r = 0; r < ranks; ++r) edges.emplace_back(r, (r + 1) % ranks);
    return edges;
}

}  // namespace

TEST_CASE("in connected grids all ranks see the same larger size", "[sides]") {
    for (bool periodic : {false, true})
        for (auto [rows, columns] : {std::pair(1, 2), {2, 2}, {3, 3}, {2, 5}, {4, 4}, {1, 7}, {1, 40}}) {
            INFO(rows << " x " << columns << (periodic ? ", periodic" : ""));
            CHECK(agree(rows * columns, grid(rows, columns, periodic)));
        }
}

TEST_CASE("where sizes may differ from rank to rank they do not agree", "[sides]") {
    for (int ranks : {3, 4, 5, 8}) CHECK_FALSE(agree(ranks, ring(ranks)));  // each edge its own size
    CHECK(agree(2, ring(2)));                                               // of two sizes both see both
    CHECK_FALSE(agree(4, {{0, 1}, {1, 0}, {2, 3}, {3, 2}}));                // two components
    CHECK_FALSE(agree(3, {{0, 1}, {1, 0}}));                                // a rank without edges
    CHECK_FALSE(agree(2, {}));
    CHECK_FALSE(agree(3, {{0, 1}, {1, 2}}));  // the middle sees two sizes, the ends one each
    CHECK_FALSE(agree(2, {{0, 0}, {1, 1}}));  // to themselves only
}

TEST_CASE("a rank with one side agrees where there is one size", "[sides]") {
    CHECK(agree(3, {{0, 1}, {0, 2}}));  // one sends, the others receive
    CHECK(agree(3, {{1, 0}, {2, 0}}));
    CHECK(agree(3, {{0, 0}, {0, 1}, {1, 1}, {0, 2}}));          // 2 receives only
    CHECK_FALSE(agree(3, {{0, 1}, {1, 0}, {0, 2}}));            // two sizes, of which 2 sees one
    CHECK(agree(2, {{0, 1}, {1, 0}, {0, 1}}));                  // repeated
    CHECK(agree(3, {{0, 1}, {1, 2}, {2, 0}, {0, 0}, {1, 1}}));  // edges to oneself join both sides
}

TEST_CASE("agreement is what trials with unlike sizes show", "[sides]") {
    std::mt19937 random(11);
    int agreed = 0, not_agreed = 0;
    for (int round = 0; round < 3000; ++round) {
        const auto ranks = static_cast<std::int32_t>(2 + random() % 7);
        Edges edges;
        for (auto n = random() % (3 * static_cast<unsigned>(ranks)); n > 0; --n)
            edges.emplace_back(random() % static_cast<unsigned>(ranks),
                               random() % static_cast<unsigned>(ranks));
        const auto known = known_by_each(ranks, edges);
        const Sides all = joined(known, random);
        REQUIRE(all == joined(known, random));  // in whatever order
        const bool expected = agree_by_trial(ranks, edges, random);
        REQUIRE((groups_of_all(all) != 0) == expected);
        (expected ? agreed : not_agreed) += 1;
    }
    CHECK(agreed > 100);
    CHECK(not_agreed > 100);
}
