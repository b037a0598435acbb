// SPDX-License-Identifier: BSD-3-Clause
//
// Scratch of schedules over several nodes: room on the shared heap that belongs to a communicator, in two
// halves for calls in turn, since mates may still read the half of the call before. Called by the views of
// nodes.cc and its kin, inside a call.
#pragma once
#include "comm/comm.h"

namespace coco::exec {

// Whether every rank has room for `blocks` (its own number) blocks of this size (the same on all ranks). Asks
// the others, by a collective, only when the blocks are larger than any that `fit` met before: all ranks
// know when that is. Requires: `fit` goes with `blocks`; all ranks of the communicator call it in the same
// call.
bool has_scratch(comm::Comm& comm, comm::Comm::Kept::Fit& fit, std::int32_t blocks,
                 std::uint64_t block_bytes);
// This call's half. Waits until no mate touches it any more. Requires: has_scratch().
std::byte* take_scratch(comm::Comm& comm);

}  // namespace coco::exec
