// SPDX-License-Identifier: BSD-3-Clause
//
// Setting a communicator up: who is where, whose segment can be mapped, and that all ranks agree on it. Two
// small collectives of the MPI library on the communicator itself; no new mappings for ranks already known.
#pragma once
#include "comm/comm.h"

namespace coco::comm {

// Requires: called by all ranks of the communicator in the same collective call.
// Returns: none if calls may run here from now on, else the reason why not, the same on all ranks.
stats::Reason set_up(Comm& comm) noexcept;

}  // namespace coco::comm
