// SPDX-License-Identifier: BSD-3-Clause
//
// Runs the schedules of all ranks over symbolic memory and finds what can go wrong in any order of events:
// wrong data, races, deadlock, copies that leave a node, unmatched messages, steps that break the rules of
// schedule/step.h.
//
// The caller is part of the run: before each call it writes all of its send and recv areas, after it it reads
// and checks them, then goes on to write them again. Order is that of vector clocks: a wait learns what its
// partner knew when it raised the milestone, and no more. So one run stands for all runs. A step of several
// blocks or ranks is taken one after the other, by the same source(i), target(i) and awaited(i) that exec
// follows.
//
// Messages between two ranks match in order. A send is not through before its receive has started (as with
// large messages), and teaches its rank nothing then (as with small ones); what is under way may not be
// touched.
//
// The executor's own promises are part of it too. Scratch alternates between two sets by call, and before a
// rank first writes there, or says that others may, it waits until all ranks of its node are done with the
// call before the last. A rank whose send area is not on the shared heap copies it to such alternating space
// at first, peers read it there, and when nobody writes its recv area the rank leaves out the waits after
// kDone. In a bcast the scratch of a rank whose buffer is on the shared heap may be an alias of that buffer:
// nothing is copied there, its mates read each segment where it is, and the rank waits for their kDone at its
// end instead of for room in its ring. So may the blocks that an alltoall leaves for mates.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"

namespace coco::simulator {

struct Call {
    algorithms::Exchange exchange;
    std::int32_t root = 0;
    std::int32_t segments = 1;
    // The registry's facts of the algorithm.
    bool may_read_peer_send = true;
    bool may_write_peer_recv = true;
    std::vector<schedule::Schedule> schedules;               // by rank
    std::vector<schedule::Neighborhood> neighborhoods = {};  // by rank, of neighbor_*; else none
};

// The call of a registry row on this map. `root` and `segments` count for bcast only.
Call make_call(const algorithms::Algorithm& algorithm, algorithms::Exchange exchange,
               const topology::NodeMap& map, std::int32_t root = 0, std::int32_t segments = 1,
               const algorithms::Parameters& parameters = {});

// The same for neighbours, with shares as they are cut when all weights are equal. straight: ranks of which
// what they send is not combined; those past the end's is.
Call make_neighbor_call(const algorithms::Algorithm& algorithm, algorithms::Exchange exchange,
                        const topology::NodeMap& map,
                        const std::vector<schedule::Neighborhood>& neighborhoods,
                        const algorithms::Parameters& parameters = {},
                        const std::vector<bool>& straight = {});

struct Verdict {
    std::string fault;  // the first one, with rank, call and place; empty: all is well
    bool read_peer_send = false;
    bool wrote_peer_recv = false;
};

struct Executor {
    bool guarded = true;         // false: writes scratch without waiting for its old readers
    std::vector<bool> staged{};  // ranks that stage their send areas; those past the end do not
    // Ranks whose scratch is an alias, in a bcast all of it, else what is left for mates; those past the end
    // have some of its own.
    std::vector<bool> aliased{};
};
// The calls of a run, one after the other; they stay the caller's, who may name one several times.
using Calls = std::vector<std::reference_wrapper<const Call>>;

Verdict simulate(const topology::NodeMap& map, const Calls& calls, const Executor& executor = {});

// Several calls of each rank under way at once, a lane for each of `lanes`: whenever a rank does one thing
// more, it may be of any lane, as `seed` draws. Lanes share nothing, and what a rank learns in one lane
// counts for nothing in another, so that no order helps. Returns: the first lane's verdict with a fault, or
// the first lane's.
Verdict simulate_together(const topology::NodeMap& map, const std::vector<Calls>& lanes, std::uint32_t seed);

}  // namespace coco::simulator
