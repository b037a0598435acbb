// SPDX-License-Identifier: BSD-3-Clause
//
// The ways in which calls run, one for each executor of the registry and form; run.cc chooses among them.
// Each makes its flight in the epoch that the lane's channel is in, and advances it on the caller's stack to
// its end; or leaves it in `later`, if that is not null, to be advanced by its owner.
#pragma once
#include <utility>

#include "base/check.h"
#include "exec/call.h"

namespace coco::exec {

using Later = std::unique_ptr<Flight>*;

template <class Way, class... Args>
Outcome fly(Later later, Args&&... args) {
    if (later != nullptr) [[unlikely]] {
        *later = std::make_unique<Way>(std::forward<Args>(args)...);
        return {};
    }
    Way way(std::forward<Args>(args)...);
    const bool is_over = way.advance();
    COCO_CHECK(is_over, "a flight whose channel does not poll goes to its end");
    return way.outcome;
}

// The order for a flight: its call, the algorithm, and what it runs on.
struct Order {
    comm::Comm& comm;
    comm::Lane& lane;
    const Call& call;
    const algorithms::Algorithm& algorithm;
};

// The row that reads peers' buffers and writes only its own.
inline const algorithms::Algorithm& plain_pull(algorithms::Collective collective) {
    return row_for(collective, algorithms::Executor::pull);
}

// small.cc. Requires: an eager schedule, dense buffers, and scratch that fits into a slot.
Outcome run_small(const Order& order, const schedule::Schedule& schedule, Later later);
// The same for v and w forms. Requires: an eager schedule, dense buffers, not in place, and table and blocks
// of this rank that fit into a slot.
Outcome run_small_sized(const Order& order, const schedule::Schedule& schedule, Later later);
// uniform.cc and sized.cc.
Outcome run_uniform(const Order& order, Later later);
Outcome run_sized(const Order& order, Later later);
// neighbors.cc. Requires: comm.neighbors is there, and open.
Outcome run_neighbors(const Order& order, const algorithms::Parameters& parameters, Later later);
// nodes.cc and nodes_sized.cc. Requires: comm spans several nodes.
Outcome run_over_nodes(const Order& order, const algorithms::Parameters& parameters, Later later);
Outcome run_sized_over_nodes(const Order& order, const algorithms::Parameters& parameters, Later later);
// bundles_sized.cc: v and w forms of neighbours. Requires: kept is of a schedule made from bundles.
Outcome run_sized_bundles(const Order& order, comm::Comm::Kept& kept, Later later);
// bcast.cc and nodes_bcast.cc, over several nodes; each takes further epochs itself, one for each train of
// segments.
Outcome run_bcast(const Order& order, const algorithms::Parameters& parameters, Later later);
Outcome run_bcast_over_nodes(const Order& order, const algorithms::Parameters& parameters, Later later);

// A flight that ends at once: the call is handed back on all ranks, for a reason that all have agreed on.
Outcome run_nothing(const Order& order, stats::Reason reason, Later later);

}  // namespace coco::exec
