// SPDX-License-Identifier: BSD-3-Clause
//
// The ways in which calls run, one for each executor of the registry and form; run.cc chooses among them.
// Each makes its flight, which owns the state of one call, on the caller's stack, in the epoch that the
// lane's channel is in, and runs it to its end.
#pragma once
#include <utility>

#include "exec/call.h"

namespace coco::exec {

template <class Flight, class... Args>
[[gnu::always_inline]] inline Outcome fly(Args&&... args) {
    Flight flight(std::forward<Args>(args)...);
    flight.run();
    return flight.outcome;
}

// The order for a flight: its call, the algorithm, and what it runs on.
struct Order {
    comm::Comm& comm;
    comm::Lane& lane;
    const Call& call;
    const algorithms::Algorithm& algorithm;
    const algorithms::Parameters& parameters;
};

// The row that reads peers' buffers and writes only its own.
inline const algorithms::Algorithm& plain_pull(algorithms::Collective collective) {
    return row_for(collective, algorithms::Executor::pull);
}

// small.cc. Requires: an eager schedule, dense buffers, and scratch that fits into a slot.
Outcome run_small(const Order& order, const schedule::Schedule& schedule);
// The same for v and w forms. Requires: an eager schedule, dense buffers, not in place, and table and blocks
// of this rank that fit into a slot.
Outcome run_small_sized(const Order& order, const schedule::Schedule& schedule);
// uniform.cc and sized.cc.
Outcome run_uniform(const Order& order);
Outcome run_sized(const Order& order);
// neighbors.cc. Requires: comm.neighbors is there, and open.
Outcome run_neighbors(const Order& order);
// nodes.cc and nodes_sized.cc. Requires: comm spans several nodes.
Outcome run_over_nodes(const Order& order);
Outcome run_sized_over_nodes(const Order& order);
// bundles_sized.cc: v and w forms of neighbours. Requires: kept is of a schedule made from bundles.
Outcome run_sized_bundles(const Order& order, comm::Schedules::Kept& kept);
// bcast.cc and nodes_bcast.cc, over several nodes; each takes further epochs itself, one for each train of
// segments.
Outcome run_bcast(const Order& order);
Outcome run_bcast_over_nodes(const Order& order);

// Ends a call at once: it is handed back on all ranks, for a reason that all have agreed on.
Outcome run_nothing(const Order& order, stats::Reason reason);

}  // namespace coco::exec
