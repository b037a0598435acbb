// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>
#include <set>

#include "algorithms/algorithm.h"

using namespace coco::algorithms;

TEST_CASE("collectives have names, and names collectives", "[registry]") {
    for (int c = 0; c < kCollectives; ++c) {
        auto collective = static_cast<Collective>(c);
        CHECK(coco::base::collective_of(name_of(collective)) == collective);
    }
    CHECK(name_of(Collective::allgatherv) == "allgatherv");
    for (auto wrong : {"", "mpi", "Alltoall", "alltoal", "alltoallvw"})
        CHECK_FALSE(coco::base::collective_of(wrong));
}

TEST_CASE("the v and w forms move the blocks of their plain form", "[registry]") {
    for (auto c : {Collective::alltoall, Collective::alltoallv, Collective::alltoallw})
        CHECK(coco::base::is_personal(c));
    for (auto c : {Collective::allgather, Collective::allgatherv})
        CHECK(exchange_of(c) == Exchange::allgather);
    CHECK(exchange_of(Collective::bcast) == Exchange::bcast);
}

TEST_CASE("every row can be found by its name, and is whole", "[registry]") {
    std::set<std::string_view> names;
    for (const Algorithm& row : registry()) {
        INFO(row.name);
        CHECK(find(row.name) == &row);
        CHECK(names.insert(row.name).second);
        CHECK(row.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == row.name.npos);
        CHECK_FALSE(row.summary.empty());
        CHECK_FALSE(row.source.empty());
        CHECK(row.collectives != 0);
        CHECK(row.make_schedule != nullptr);
        if (row.segmented) CHECK(serves(row, Collective::bcast));
    }
    for (auto promised : {"naive", "morton", "numa_morton", "tiled", "eager", "direct", "segmented", "bruck",
                          "multinode_morton", "leader", "multileader", "node_aware", "split"})
        CHECK(names.count(promised) == 1);
}

TEST_CASE("mpi and unknown names are no rows", "[registry]") {
    for (auto wrong : {"mpi", "", "Morton", "naive ", "Leader"}) CHECK(find(wrong) == nullptr);
}

TEST_CASE("every collective has an algorithm for any buffer", "[registry]") {
    for (int c = 0; c < kCollectives; ++c) {
        bool any_buffer = false;
        for (const Algorithm& row : registry())
            any_buffer |=
                serves(row, static_cast<Collective>(c)) && !row.reads_peer_send() && !row.writes_peer_recv();
        CHECK(any_buffer);
    }
}
