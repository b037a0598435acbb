// SPDX-License-Identifier: BSD-3-Clause
//
// The cost of a job's memory: every rank allocates and touches blocks of many sizes, exchanges some of them,
// and tells its share of memory (Pss) and page tables (VmPTE). Run without and under `coco run`, and compare
// the largest.
//
//   mpiexec -n 4 build/mpich/bench/heap_memory 1024        # MiB for each rank
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

long kilobytes(const char* file, const char* field) {
    std::FILE* in = std::fopen(file, "r");
    char line[256];
    long value = 0;
    while (in != nullptr && std::fgets(line, sizeof line, in) != nullptr)
        if (std::strncmp(line, field, std::strlen(field)) == 0)
            value = std::strtol(line + std::strlen(field), nullptr, 10);
    if (in != nullptr) std::fclose(in);
    return value;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const std::size_t wanted = static_cast<std::size_t>(argc > 1 ? std::atol(argv[1]) : 1024) << 20;
    // Half in large arrays, the rest in blocks from 64 B to 1 MiB.
    std::vector<char*> blocks;
    std::size_t have = 0, size = 64;
    while (have < wanted) {
        std::size_t bytes = have < wanted / 2 ? wanted / 16 : size;
        size = size >= (1 << 20) ? 64 : size * 2;
        blocks.push_back(static_cast<char*>(std::malloc(bytes)));
        std::memset(blocks.back(), rank, bytes);
        have += bytes;
    }
    // Peers' pages are mapped by being used: 4 MiB to each of them.
    const int part = 4 << 20;
    for (int i = 0; i < 3; ++i)
        MPI_Alltoall(blocks[0], part, MPI_BYTE, blocks[1], part, MPI_BYTE, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    long mine[2] = {kilobytes("/proc/self/smaps_rollup", "Pss:"), kilobytes("/proc/self/status", "VmPTE:")},
         most[2];
    MPI_Reduce(mine, most, 2, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        std::printf("%zu MiB asked for on each of %d ranks: %ld KiB of memory, %ld KiB of page tables\n",
                    wanted >> 20, ranks, most[0], most[1]);
    MPI_Finalize();
}
