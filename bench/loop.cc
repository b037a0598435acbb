// SPDX-License-Identifier: BSD-3-Clause
//
// A plain loop of one collective, as a program has it: no barrier in it, no other candidate in turns. For
// grid.py, which runs it once for each candidate.
//
// usage: mpiexec -n N coco run loop COLLECTIVE BYTES CALLS COMPUTING_US Prints what a call took in the whole
// loop and in its last quarter, in microseconds of the slowest rank, computing left out.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "calls.h"

namespace {

void compute(double us) {
    for (const double end = MPI_Wtime() + us * 1e-6; us > 0 && MPI_Wtime() < end;) continue;
}

double slowest(double mine) {
    double all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc != 5) bench::give_up("usage: loop COLLECTIVE BYTES CALLS COMPUTING_US");
    const std::string collective = argv[1];
    const long bytes = std::atol(argv[2]), calls = std::atol(argv[3]);
    const double computing_us = std::atof(argv[4]);
    const auto ranks = static_cast<std::size_t>(bench::ranks()),
               room = ranks * static_cast<std::size_t>(bytes);
    bench::Blocks blocks{static_cast<char*>(std::calloc(1, room)), static_cast<char*>(std::calloc(1, room)),
                         std::vector<int>(ranks), std::vector<int>(ranks),
                         std::vector<MPI_Datatype>(ranks, MPI_BYTE)};
    if (blocks.send == nullptr || blocks.recv == nullptr) bench::give_up("no memory for the buffers");
    const bench::Call call = bench::calls_of(collective, blocks, bytes).ours;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    double last_quarter = begin;
    for (long i = 0; i < calls; ++i) {
        if (i == calls - calls / 4) last_quarter = MPI_Wtime();
        compute(computing_us);
        call();
    }
    const double end = MPI_Wtime();
    const double whole_us = slowest(end - begin) * 1e6 / static_cast<double>(calls) - computing_us,
                 quarter_us =
                     slowest(end - last_quarter) * 1e6 / static_cast<double>(calls / 4) - computing_us;
    if (bench::rank() == 0) std::printf("%.4f %.4f\n", whole_us, quarter_us);
    MPI_Finalize();
}
