// SPDX-License-Identifier: BSD-3-Clause
//
// The report of COCO_STATS at the end of a job. Called by lifecycle.cc. Thread safety: the thread that ends
// MPI.
#pragma once
#include "mpi/handles.h"

namespace coco::dispatch {

// Rank 0 reports the calls of all ranks of the world. Requires: all of these call it, and MPI runs.
void report_world();
// For a program of sessions alone, which has no MPI_Finalize: has rank 0 of the processes that were started
// together report its own calls when it exits, unless the world reports.
void plan_sessions_report(mpi::Session session);
void let_world_report();

}  // namespace coco::dispatch
