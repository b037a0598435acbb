// SPDX-License-Identifier: BSD-3-Clause
//
// Memory runs out on one rank, and the program catches that. Where it happens in the midst of a collective,
// in what all ranks make together for the first call, the rank must not go on with half of it made, nor end
// without a word: the job must end with a line.
//
//   no_memory_test neighbor   in the first call on neighbours of a communicator in use
//   no_memory_test new        in the first call on a communicator
#include <mpi.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#include "support/open_comm.h"

namespace {

// Takes all that malloc has, of every size.
void take_all_memory() {
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit now{static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)), RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &now);
    struct Block {
        Block* next;
    };
    static Block* taken = nullptr;
    for (std::size_t bytes = 1 << 20; bytes >= sizeof(Block); bytes -= bytes > 4096 ? bytes / 8 : 8)
        while (auto* block = static_cast<Block*>(std::malloc(bytes))) *block = {taken}, taken = block;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const std::vector<int> peers{(rank + 1) % ranks, (rank + ranks - 1) % ranks};
    const bool in_use = argc > 1 && std::string(argv[1]) == "neighbor";
    MPI_Comm comm;
    if (in_use)
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, peers.data(), MPI_UNWEIGHTED, 2, peers.data(),
                                       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    else
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    constexpr int kLarge = 4096;  // blocks of so many ints open a communicator at once
    std::vector<int> sent(static_cast<std::size_t>(kLarge * (ranks + 2))), came(sent.size());
    // These calls make what is made once in a process: the MPI library may not bear to lack memory for its
    // part.
    for (int i = 0; i < 6; ++i)
        MPI_Alltoall(sent.data(), kLarge, MPI_INT, came.data(), kLarge, MPI_INT,
                     in_use ? comm : MPI_COMM_WORLD);
    if (rank == ranks - 1) take_all_memory();
    for (int i = 0; i < 20; ++i) {
        try {
            if (in_use)
                MPI_Neighbor_alltoall(sent.data(), 1, MPI_INT, came.data(), 1, MPI_INT, comm);
            else
                MPI_Alltoall(sent.data(), kLarge, MPI_INT, came.data(), kLarge, MPI_INT, comm);
        } catch (const std::bad_alloc&) {
            std::puts("caught");
        }
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
}
