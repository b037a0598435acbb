// SPDX-License-Identifier: BSD-3-Clause
//
// Finding out a communicator's neighbours, by notices on one node or by collectives of the MPI library, and
// preparing the shares and bundles in which their blocks are carried.
//
// Called by dispatch and exec, in calls on neighbours. Thread safety: that of the communicator. Fails: out of
// memory ends the job (heap/heap.h, t_undivided), as the others wait for this rank's part.
#pragma once
#include <cstdint>
#include <span>

#include "comm/comm.h"
#include "comm/neighbors.h"

namespace coco::comm {

// Requires (all): comm is open; all its ranks are in the same call on neighbours.
// The communicator's neighbours; made when first asked for.
Neighbors& look_up_neighbors(Comm& comm);
// The share of this rank. Returns: null if it has not been made.
const schedule::EdgeShare* find_share(const Comm& comm, algorithms::Collective collective, schedule::Cut cut);
// The same; made when first asked for. weights: by receive block, what its copy costs; empty:
// all the same.
const schedule::EdgeShare& make_share(Comm& comm, algorithms::Collective collective, schedule::Cut cut,
                                      std::span<const std::uint64_t> weights);

// The bundles between nodes that carry this rank's edges; made when first asked for. leaders: as Leaders()
// takes them.
const schedule::Bundles& make_bundles(Comm& comm, algorithms::Collective collective, std::int32_t leaders);
// The pattern, which says who combines what (combining.cc); made when first asked for, by all ranks together,
// in rounds of letters, whose number and time are logged. Requires: the communicator has several nodes.
const schedule::Combining& make_combining(Comm& comm, algorithms::Collective collective,
                                          const algorithms::Parameters& parameters);

}  // namespace coco::comm
