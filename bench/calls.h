// SPDX-License-Identifier: BSD-3-Clause
//
// The collectives that benchmarks time, by name, with blocks of one size: alltoall, alltoallv, alltoallw,
// allgather, allgatherv and bcast. Called on all ranks alike. A name that is none of these ends the program.
#pragma once
#include <mpi.h>

#include <string>
#include <vector>

#include "turns.h"

namespace bench {

// Buffers for blocks of up to the same size for each rank, and what v and w forms say of them.
struct Blocks {
    char *send, *recv;
    std::vector<int> counts, starts;
    std::vector<MPI_Datatype> types;
};

// The two ways to call one collective with blocks of `bytes`. comm: has as many ranks as MPI_COMM_WORLD. The
// arrays of `b` are written to, and used by the calls.
Pair calls_of(const std::string& name, Blocks& b, long bytes, MPI_Comm comm = MPI_COMM_WORLD);

}  // namespace bench
