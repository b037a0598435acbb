// SPDX-License-Identifier: BSD-3-Clause
//
// What a rank takes of the machine: memory of its own, shared memory (its part of each page), mappings and
// descriptors, the means over all ranks, at each stage of a job. Run without and under `coco run`; the
// difference is libcoco's. COCO_TOPOLOGY=nodes=N invents nodes.
//
//   mpiexec -n 200 build/mpich/bench/footprint
#include <mpi.h>

#include <array>
#include <cstdio>
#include <vector>

#include "tests/mpi/footprint.h"

namespace {

constexpr int kCommunicators = 10, kCalls = 60;  // so many that a new communicator is set up

void tell(const char* stage) {
    const test::Footprint now;
    const std::array<double, 5> mine = {double(now.own_kib), double(now.shared_kib), double(now.mappings),
                                        double(now.segments), double(now.descriptors)};
    std::array<double, 5> sums{};
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Reduce(mine.data(), sums.data(), 5, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        std::printf("%-28s %9.0f KiB own %9.0f KiB shared %7.1f mappings (%.1f heaps) %6.1f descriptors\n",
                    stage, sums[0] / ranks, sums[1] / ranks, sums[2] / ranks, sums[3] / ranks,
                    sums[4] / ranks);
    MPI_Barrier(MPI_COMM_WORLD);
}

void use(MPI_Comm comm) {
    int ranks;
    MPI_Comm_size(comm, &ranks);
    std::vector<double> send(static_cast<std::size_t>(ranks)), recv(send.size());
    for (int call = 0; call < kCalls; ++call) {
        MPI_Alltoall(send.data(), 1, MPI_DOUBLE, recv.data(), 1, MPI_DOUBLE, comm);
        MPI_Allgather(send.data(), 1, MPI_DOUBLE, recv.data(), 1, MPI_DOUBLE, comm);
        MPI_Bcast(send.data(), 1, MPI_DOUBLE, 0, comm);
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    tell("after MPI_Init");
    use(MPI_COMM_WORLD);
    tell("after calls on the world");
    for (int i = 0; i < kCommunicators; ++i) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        use(comm);
    }
    tell("after calls on 10 more");
    MPI_Finalize();
}
