// SPDX-License-Identifier: BSD-3-Clause
//
// Driving the MPI library while a rank waits in our code: others may rely on this rank to move their
// messages. Done by testing a receive from ourselves that nobody ever sends to, on a communicator of our own:
// a probe there would be answered by MPICH without a look at the network.
#pragma once
#include "mpi/handles.h"

namespace coco::mpi {

// One look at the MPI library's progress engine. Requires: called by a thread that is inside an MPI call.
// Safe with MPI_THREAD_MULTIPLE: one thread at a time looks, the others need not. Returns: whether the look
// seems to have found work, such as a message or another rank's one-sided operation. No MPI library tells
// that, so the look is timed: it counts as work if it took much longer than the shortest look so far. A wrong
// answer costs time only.
bool drive_progress();
// Cancels the receive and frees the communicator. Requires: before the library's MPI_Finalize.
void end_progress();
// The communicator of the call that this thread is in: looked at where there is none of our own (sessions
// alone).
void set_current(Comm comm);
// The communicator of our own, of this rank alone, which returns errors; null while there is none.
Comm own_comm();

}  // namespace coco::mpi
