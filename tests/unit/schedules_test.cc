// SPDX-License-Identifier: BSD-3-Clause
//
// The schedules of bcasts that a communicator keeps: however many roots and lengths there are, they take no
// more memory than a hundred or so do, and the one that is given is always the one that was asked for.
#include <malloc.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "comm/comm.h"

using namespace coco;

namespace {

constexpr std::int32_t kRanks = 48;

// Returns: the key of a bcast by the algorithm.
comm::ScheduleKey deal(comm::Comm& comm, const char* algorithm, std::int32_t nodes) {
    std::vector<std::uint64_t> node, domain(kRanks);
    for (std::int32_t r = 0; r < kRanks; ++r) node.push_back(static_cast<std::uint64_t>(r % nodes));
    comm.rank = 5;
    comm.ranks = kRanks;
    comm.map = topology::make_node_map(node, domain);
    return {algorithms::find(algorithm), algorithms::Exchange::bcast, 0, 1};
}

bool is_right(const schedule::Schedule& schedule, const comm::Comm& comm, const comm::ScheduleKey& key) {
    const auto wanted = key.algorithm->make_schedule({.exchange = key.exchange,
                                                      .rank = comm.rank,
                                                      .map = &comm.map,
                                                      .root = key.root,
                                                      .segments = key.segments,
                                                      .parameters = key.parameters});
    return schedule.scratch_blocks == wanted.scratch_blocks && schedule.steps.size() == wanted.steps.size() &&
           std::memcmp(schedule.steps.data(), wanted.steps.data(),
                       wanted.steps.size() * sizeof wanted.steps[0]) == 0;
}

}  // namespace

TEST_CASE("schedules of bcasts take bounded memory, and are those that were asked for") {
    for (auto [algorithm, nodes] : {std::pair{"segmented", 1}, {"leader", 6}}) {
        comm::Comm comm;
        comm::ScheduleKey key = deal(comm, algorithm, nodes);
        int wrong = 0;
        const std::size_t before = mallinfo2().uordblks;
        for (int turn = 0; turn < 2; ++turn)
            for (key.segments = 1; key.segments <= 64; ++key.segments)
                for (key.root = 0; key.root < kRanks; ++key.root) {
                    const std::shared_ptr<const schedule::Schedule> schedule = comm.bcast_schedule_for(key);
                    if (key.segments % 9 == 1) wrong += !is_right(*schedule, comm, key);
                }
        CHECK(wrong == 0);
        CHECK(mallinfo2().uordblks - before < 8 << 20);
    }
}

TEST_CASE("a schedule that is asked for again is not made again") {
    comm::Comm comm;
    comm::ScheduleKey key = deal(comm, "leader", 6);
    std::vector<const schedule::Schedule*> made;
    for (key.root = 0; key.root < kRanks; ++key.root) made.push_back(comm.bcast_schedule_for(key).get());
    for (key.root = 0; key.root < kRanks; ++key.root)
        CHECK(comm.bcast_schedule_for(key).get() == made[static_cast<std::size_t>(key.root)]);
}
