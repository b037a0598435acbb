// SPDX-License-Identifier: BSD-3-Clause
//
// Setting a communicator up, in one way for all: its ranks meet, get a wire where they are on several nodes,
// and open their channel. Ranks that know one another since MPI_Init (bond.h) have met already; others
// exchange cards by collectives of the MPI library on the communicator itself.
//
// Called by find.cc, set_choice_hash() by dispatch. Thread safety: that of the communicator. Fails: with a
// reason, the same on all ranks; the communicator's calls are left to the MPI library then.
#pragma once
#include <cstdint>

#include "comm/comm.h"

namespace coco::comm {

// Requires: called by all ranks of the communicator in the same collective call.
// Returns: none if calls may run here from now on, else the reason why not.
stats::Reason set_up(Comm& comm) noexcept;
// Sets the hash of this process's settings and rules, by which ranks choose. Ranks whose hashes differ never
// run a call of ours together. Requires: called before the first set_up().
void set_choice_hash(std::uint64_t hash);

}  // namespace coco::comm
