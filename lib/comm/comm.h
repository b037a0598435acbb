// SPDX-License-Identifier: BSD-3-Clause
//
// The state of a communicator: where its ranks are, their control blocks, the epoch, our stage ring, the
// schedules made for it. It hangs on the communicator as an attribute (bond.h) and dies with it. Thread
// safety: MPI allows one collective at a time on a communicator; different ones share nothing but the
// process-wide tables, which lock.
#pragma once
#include "base/bits.h"
#include "base/check.h"
#include "base/index.h"
#include "mpi/handles.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/algorithm.h"
#include "blocks/store.h"
#include "channel/channel.h"
#include "choose/choices.h"
#include "comm/neighbors.h"
#include "comm/schedules.h"
#include "messages/post.h"
#include "mpi/wire.h"
#include "policy/policy.h"
#include "stats/stats.h"
#include "topology/node_map.h"

namespace coco::comm {

// The resources on which one call at a time runs, lent to its flight. The communicator has one lane, on which
// its blocking calls go; each further call that shall be under way beside them needs another lane.
struct Lane {
    std::size_t number = 0;  // its number among the communicator's lanes
    channel::Channel channel;
    blocks::Store blocks;
    messages::Post post;
    bool control_is_lone = false;  // its control block is in private memory: no mates on the node
};

struct Bond;

struct Comm {
    mpi::Comm handle;
    // The identity by which its ranks know it alike and meet (comm/bond.h), and their numbers in the world; 0
    // and null: they meet by a collective.
    std::uint64_t id = 0;
    const std::vector<std::int32_t>* world_ranks = nullptr;
    // There are more ranks than CPUs, on any host of the communicator (the same on all ranks), or on this
    // rank's.
    bool crowded = false, crowded_here = false;
    Bond* bond = nullptr;  // which owns this state, and lives as long; null while it waits to be used again
    // This is no communicator's state, but stands in for the state of the one with this bond, which has been
    // called too seldom to get its own.
    bool stands_in = false;
    std::int32_t rank = 0;
    std::int32_t ranks = 0;
    // none: calls may run here; otherwise why every call is handed back.
    stats::Reason closed = stats::Reason::not_set_up;
    bool settled = false;  // open, or closed for good: calls need not be counted any more

    topology::NodeMap map;
    std::vector<std::int32_t> mates;       // the other ranks of this rank's node
    std::unique_ptr<mpi::Wire> wire;       // several nodes: the messages between them
    std::unique_ptr<Neighbors> neighbors;  // null until asked for: comm/neighbors.h
    // The facts by which policies choose, as far as they are the communicator's and of all collectives.
    policy::Facts facts() const {
        return {.collective = {},
                .nodes = map.nodes(),
                .ranks_per_node = map.ranks_per_node(),
                .domains = map.domains(),
                .block_bytes = std::nullopt,
                .crowded = crowded,
                .calls = 0};
    }
    // Edges from a rank to other nodes, the mean. Requires: neighbors.
    std::uint64_t degree() const {
        COCO_CHECK_DEAR(neighbors != nullptr && ranks > 0, "a degree is that of ranks with neighbours");
        return neighbors->edges_between_nodes / base::index(ranks);
    }
    Lane lane;
    Schedules schedules;
    choose::Choices choices;
    // What rank 0's journal told when the communicator was set up by a collective.
    std::vector<std::int64_t> told;
    std::int64_t agreement_ns = 2000;  // how long this rank was in the last agreement on what was learned

    ~Comm();

    // The schedules of this rank (schedules.h).
    Schedules::Kept& kept_schedule(const ScheduleKey& key) { return schedules.of_exchange(key, {map, rank}); }
    const schedule::Schedule& schedule_for(const ScheduleKey& key) { return *kept_schedule(key).schedule; }
    const schedule::Schedule& exchange_schedule(const algorithms::Algorithm& algorithm, std::int32_t width,
                                                algorithms::Exchange exchange) {
        COCO_CHECK_DEAR(algorithm.one_node() && map.nodes() == 1,
                        "an exchange on one node runs an algorithm of one node");
        return schedules.of_exchange_on_node(algorithm, width, exchange, {map, rank});
    }
    std::shared_ptr<const schedule::Schedule> bcast_schedule_for(const ScheduleKey& key) {
        return schedules.of_bcast(key, {map, rank});
    }
};

}  // namespace coco::comm
