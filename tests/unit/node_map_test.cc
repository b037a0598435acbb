// SPDX-License-Identifier: BSD-3-Clause
#include "topology/node_map.h"

#include <catch2/catch.hpp>

#include "topology/share.h"

using namespace coco::topology;
using Ranks = std::vector<std::int32_t>;

TEST_CASE("shares are as equal as can be and cover everything once", "[topology]") {
    for (std::int64_t total = 0; total <= 20; ++total)
        for (std::int64_t parts = 1; parts <= 7; ++parts) {
            std::int64_t next = 0;
            for (std::int64_t part = 0; part < parts; ++part) {
                Share share = share_of(total, parts, part);
                CHECK(share.first == next);
                CHECK(share.count - total / parts == (part < total % parts ? 1 : 0));
                for (next = share.first; next < share.first + share.count; ++next)
                    CHECK(part_of(total, parts, next) == part);
            }
            CHECK(next == total);
        }
}

TEST_CASE("nodes and domains are numbered as they first appear", "[topology]") {
    NodeMap map = make_node_map({70, 30, 70, 30, 5}, {1, 1, 0, 1, 1});
    CHECK(map.node == Ranks{0, 1, 0, 1, 2});
    CHECK(map.domain == Ranks{0, 1, 2, 1, 3});  // label 1 is another domain on each node
    CHECK(map.ranks() == 5);
    CHECK(map.nodes() == 3);
    CHECK(map.domains() == 4);
    CHECK(map.ranks_on_node(1) == Ranks{1, 3});
    CHECK(map.ranks_in_domain(2) == Ranks{2});
}

TEST_CASE("one node has its ranks in consecutive domains", "[topology]") {
    CHECK(one_node(5, 2).domain == Ranks{0, 0, 0, 1, 1});
    CHECK(one_node(3).domain == Ranks{0, 0, 0});
    CHECK(one_node(3).nodes() == 1);
}

TEST_CASE("an invented machine is read in any order", "[topology]") {
    std::string error;
    auto read = [&](const char* text) {
        auto machine = parse_invented(text, error);
        REQUIRE(machine);
        return std::pair{machine->nodes, machine->domains};
    };
    CHECK(read("nodes=4,domains=2") == std::pair{4, 2});
    CHECK(read("domains=2,nodes=4") == std::pair{4, 2});
    CHECK(read("nodes=3") == std::pair{3, 1});
    CHECK(read("domains=8") == std::pair{1, 8});
}

TEST_CASE("what is no invented machine is refused with the reason", "[topology]") {
    auto [text, reason] = GENERATE(table<const char*, const char*>({
        {"", "neither nodes=N nor domains=M"},
        {"nodes", "\"nodes\" is neither"},
        {"sockets=2", "\"sockets=2\" is neither"},
        {"nodes=2,", "\"\" is neither"},
        {"nodes=2 ,domains=2", "not \"2 \""},
        {"nodes=0", "nodes must be a number from 1"},
        {"domains=-1", "domains must be a number from 1"},
        {"nodes=2x", "not \"2x\""},
        {"nodes=99999999999999999999", "nodes must be"},
        {"nodes=1048577", "to 1048576"},
        {"nodes=2,nodes=2", "nodes is given twice"},
    }));
    std::string error;
    CHECK_FALSE(parse_invented(text, error));
    CHECK_THAT(error, Catch::Contains(reason));
}

TEST_CASE("ranks are dealt to invented nodes and domains in order", "[topology]") {
    auto dealt = [](Invented machine, std::int32_t ranks) {
        std::vector<std::pair<int, int>> seats;
        for (std::int32_t r = 0; r < ranks; ++r) {
            Seat seat = deal(machine, ranks, r);
            seats.emplace_back(seat.node, seat.domain);
        }
        return seats;
    };
    using Seats = std::vector<std::pair<int, int>>;
    CHECK(dealt({2, 2}, 7) == Seats{{0, 0}, {0, 0}, {0, 1}, {0, 1}, {1, 0}, {1, 0}, {1, 1}});
    CHECK(dealt({4, 2}, 3) == Seats{{0, 0}, {1, 0}, {2, 0}});
    CHECK(dealt({1, 1}, 2) == Seats{{0, 0}, {0, 0}});
}
