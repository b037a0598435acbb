// SPDX-License-Identifier: BSD-3-Clause
//
// The faces of cubes of doubles that ranks in a ring give their neighbours, by MPI_Neighbor_alltoallw and
// subarrays of the array that holds the cube and its ghost cells: cut along the last axis, so that a face is
// runs of 8 bytes, or along the first, so that it is one run. Against the MPI library's own function, in
// turns.
//
// usage: mpiexec -n N coco run faces [--from EDGE] [--to EDGE] [bench/turns.h's options]
//   edges are powers of two times --from; by default 50, 100 and 200
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "turns.h"

namespace {

MPI_Datatype face(int edge, int axis, int at) {
    int sizes[3] = {edge, edge, edge}, parts[3] = {edge, edge, edge}, starts[3] = {0, 0, 0};
    sizes[axis] = edge + 2;
    parts[axis] = 1;
    starts[axis] = at;
    MPI_Datatype made;
    MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &made);
    MPI_Type_commit(&made);
    return made;
}

bench::Figure measure(MPI_Comm ring, int edge, int axis, const bench::Timing& timing) {
    const std::size_t words =
        static_cast<std::size_t>(edge) * static_cast<std::size_t>(edge) * static_cast<std::size_t>(edge + 2);
    std::vector<double> cube(words, 1.0);
    MPI_Datatype sent[2] = {face(edge, axis, 1), face(edge, axis, edge)};
    MPI_Datatype received[2] = {face(edge, axis, 0), face(edge, axis, edge + 1)};
    const int counts[2] = {1, 1};
    const MPI_Aint starts[2] = {0, 0};
    const bench::Pair pair =
        bench::pair_of(MPI_Neighbor_alltoallw, "PMPI_Neighbor_alltoallw", cube.data(), counts, starts, sent,
                       cube.data(), counts, starts, received, ring);
    auto* memory = reinterpret_cast<char*>(cube.data());
    const std::size_t bytes = words * sizeof(double);
    const bench::Figure figure = bench::measure(pair, timing, {{memory, bytes}, {memory, bytes}});
    for (MPI_Datatype* type : {&sent[0], &sent[1], &received[0], &received[1]}) MPI_Type_free(type);
    return figure;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const bench::Timing timing = bench::read_timing(
        argc, argv, {.from_bytes = 50, .to_bytes = 200, .rounds = 9, .batch_us = 20'000, .figure_us = 4e6},
        [](const std::string&, const auto&) { return false; });
    const int ranks = bench::ranks(), around = 1;
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &around, 0, &ring);
    if (bench::rank() == 0)
        std::printf("%d ranks in a ring\n%6s %10s %12s %12s %7s\n", ranks, "edge", "run bytes", "ours us",
                    "MPI us", "ratio");
    for (long edge = timing.from_bytes; edge <= timing.to_bytes; edge *= 2)
        for (int axis : {2, 0}) {
            const bench::Figure figure = measure(ring, static_cast<int>(edge), axis, timing);
            if (bench::rank() == 0)
                std::printf("%6ld %10ld %12.1f %12.1f %7.2f\n", edge, axis == 2 ? 8 : 8 * edge * edge,
                            figure.ours_us, figure.library_us, figure.ratio());
        }
    MPI_Comm_free(&ring);
    MPI_Finalize();
}
