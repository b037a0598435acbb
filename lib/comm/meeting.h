// SPDX-License-Identifier: BSD-3-Clause
//
// How the ranks of a communicator with an identity (comm/bond.h) meet on their node without the MPI library.
// In its first call that counts, a rank takes a control block and shows it in its directory, under the
// communicator's identity. It finds a mate's block in the mate's directory when it first waits for that mate:
// no rank waits for more mates than its schedules do. When a communicator is freed, each rank counts itself
// out in the block of the node's first rank; a block is used again once all ranks are out, so no rank loses a
// block that it may still read, nor the entry by which it may still find one.
//
// Called by comm.cc and bond.cc. Thread safety: that of the communicator; the process's directory and control
// blocks lock. Fails: without memory for a control block the job ends with one line, as mates may wait for it
// already.
#pragma once
#include <cstdint>
#include <memory>

#include "comm/bond.h"
#include "comm/comm.h"

namespace coco::comm {

// Makes the state of a communicator with an identity, closed: new, or the one that an earlier communicator
// left.
std::unique_ptr<Comm> make_state(mpi::Comm handle, Bond& bond);
// Opens a communicator whose ranks are all on one node.
void open_on_node(Comm& comm);
// Shows this rank's control block to its mates, whatever the number of nodes.
void show_control(Comm& comm);
// Leaves a communicator that was freed. Its members keep the state if it can be used again.
void part(std::unique_ptr<Comm> comm, Members& members);

}  // namespace coco::comm
