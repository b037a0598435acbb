// SPDX-License-Identifier: BSD-3-Clause
//
// Large-count calls for an MPI library that has none. The doors of MPI_X_c are there whatever the library
// has, so that a program which asks for them finds them: they serve such a program by the library's MPI_X, as
// long as all numbers fit into an int. Called by the doors. Thread safety: any thread that may call MPI.
#pragma once
#include "dispatch/args.h"

namespace coco::dispatch {

// Runs the call by the library's function of int counts. Returns: its result; raises MPI_ERR_COUNT where a
// count or displacement is too large. Requires: the library has no large-count functions.
int call_narrowed(const Args& args);

}  // namespace coco::dispatch
