// SPDX-License-Identifier: BSD-3-Clause
#include "calls.h"

namespace bench {

Pair calls_of(const std::string& name, Blocks& b, long bytes, MPI_Comm comm) {
    int n = static_cast<int>(bytes);
    for (int r = 0; r < ranks(); ++r) {
        b.counts[r] = n;
        b.starts[r] = r * n;
    }
    const int *counts = b.counts.data(), *starts = b.starts.data();
    const MPI_Datatype* types = b.types.data();
    if (name == "alltoall")
        return pair_of(&MPI_Alltoall, "PMPI_Alltoall", b.send, n, MPI_BYTE, b.recv, n, MPI_BYTE, comm);
    if (name == "alltoallv")
        return pair_of(&MPI_Alltoallv, "PMPI_Alltoallv", b.send, counts, starts, MPI_BYTE, b.recv, counts,
                       starts, MPI_BYTE, comm);
    if (name == "alltoallw")
        return pair_of(&MPI_Alltoallw, "PMPI_Alltoallw", b.send, counts, starts, types, b.recv, counts,
                       starts, types, comm);
    if (name == "allgather")
        return pair_of(&MPI_Allgather, "PMPI_Allgather", b.send, n, MPI_BYTE, b.recv, n, MPI_BYTE, comm);
    if (name == "allgatherv")
        return pair_of(&MPI_Allgatherv, "PMPI_Allgatherv", b.send, n, MPI_BYTE, b.recv, counts, starts,
                       MPI_BYTE, comm);
    if (name == "bcast") return pair_of(&MPI_Bcast, "PMPI_Bcast", b.send, n, MPI_BYTE, 0, comm);
    give_up("unknown collective " + name + ": alltoall alltoallv alltoallw allgather allgatherv bcast");
}

}  // namespace bench
