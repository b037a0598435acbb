// SPDX-License-Identifier: BSD-3-Clause
//
// Calls after which libcoco serves a communicator, on one node and on several: it leaves the first calls on a
// new one to the MPI library.
#pragma once
#include <mpi.h>

#include <vector>

namespace test {

inline void open_comm(MPI_Comm comm) {
    constexpr int kInts = 8192, kCalls = 3;  // an exchange of so large blocks counts as many small ones
    int ranks = 0;
    MPI_Comm_size(comm, &ranks);
    std::vector<int> from(static_cast<std::size_t>(ranks * kInts)), to(from.size());
    for (int i = 0; i < kCalls; ++i)
        MPI_Alltoall(from.data(), kInts, MPI_INT, to.data(), kInts, MPI_INT, comm);
}

}  // namespace test
