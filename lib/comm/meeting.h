// SPDX-License-Identifier: BSD-3-Clause
//
// How the ranks of a communicator with an identity (comm/bond.h) meet on their node without the MPI library.
// In its first call that counts, a rank takes a control block and shows it in its directory, under the
// communicator's identity. It finds a mate's block in the mate's directory when it first waits for that mate:
// no rank waits for more mates than its schedules do. When a communicator is freed, each rank counts itself
// out in the block of the node's first rank; a block is used again once all ranks are out, so no rank loses a
// block that it may still read, nor the entry by which it may still find one.
//
// Called by set_up.cc and bond.cc. Thread safety: that of the communicator; the process's directory and
// control blocks lock. Fails: without memory for a control block the job ends with one line, as mates may
// wait for it already.
#pragma once
#include "comm/comm.h"

namespace coco::comm {

// Shows this rank's control block to its mates, whatever the number of nodes, and opens the channel to them.
void show_control(Comm& comm);
// Leaves the mates of a communicator that was freed. Requires: show_control().
void leave_mates(Comm& comm);

}  // namespace coco::comm
