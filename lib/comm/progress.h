// SPDX-License-Identifier: BSD-3-Clause
//
// Driving the MPI library while a rank waits in our code: others may rely on this rank to move their messages.
#pragma once

namespace coco::comm {

// One look at the MPI library's progress engine, on a communicator of our own that carries no messages.
// Requires: called by a thread that is inside an MPI call. Safe with MPI_THREAD_MULTIPLE.
void drive_progress();
// Frees that communicator. Requires: before the library's MPI_Finalize; waiting afterwards makes it again.
void end_progress();

}  // namespace coco::comm
