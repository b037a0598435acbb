// SPDX-License-Identifier: BSD-3-Clause
//
// The redistributions of a parallel FFT by MPI_Alltoallw and subarrays, without packing: a cube of complex
// doubles that is cut along one axis comes to be cut along another. Against the MPI library's own function,
// in turns.
//
// usage: mpiexec -n N coco run redistribute [--from EDGE] [--to EDGE] [--private] [bench/turns.h's options]
//   edges are powers of two times --from; by default 64, 128 and 256. --private: buffers from mmap instead of malloc.
#include <sys/mman.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "turns.h"

namespace {

using Complex = double[2];

// Of a cube with edges of `edge`, what a rank has when it is cut along `axis`: its blocks for or from all
// ranks, cut along `across`.
struct Side {
    Side(int edge, int axis, int across) {
        const int ranks = bench::ranks();
        int sizes[3] = {edge, edge, edge}, parts[3], starts[3] = {0, 0, 0};
        sizes[axis] /= ranks;
        for (int d = 0; d < 3; ++d) parts[d] = sizes[d];
        parts[across] /= ranks;
        MPI_Datatype complex;
        MPI_Type_contiguous(2, MPI_DOUBLE, &complex);
        for (int r = 0; r < ranks; ++r) {
            starts[across] = r * parts[across];
            MPI_Datatype made;
            MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, complex, &made);
            MPI_Type_commit(&made);
            types.push_back(made);
        }
        MPI_Type_free(&complex);
    }
    ~Side() {
        for (MPI_Datatype& type : types) MPI_Type_free(&type);
    }
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;
    std::vector<MPI_Datatype> types;
};

char* allocate(std::size_t bytes, bool in_mapping) {
    void* at = in_mapping ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                          : std::malloc(bytes);
    auto* memory = static_cast<char*>(at);
    for (std::size_t i = 0; i < bytes; ++i) memory[i] = static_cast<char>(i);
    return memory;
}

bench::Figure measure(int edge, int from, int to, const bench::Timing& timing, bool in_mapping) {
    const Side send(edge, from, to), recv(edge, to, from);
    const std::size_t bytes = sizeof(Complex) * static_cast<std::size_t>(edge) *
                              static_cast<std::size_t>(edge) * static_cast<std::size_t>(edge) /
                              static_cast<std::size_t>(bench::ranks());
    char *source = allocate(bytes, in_mapping), *target = allocate(bytes, in_mapping);
    const std::vector<int> counts(static_cast<std::size_t>(bench::ranks()), 1), starts(counts.size(), 0);
    const bench::Pair pair = bench::pair_of(MPI_Alltoallw, "PMPI_Alltoallw", source, counts.data(),
                                            starts.data(), send.types.data(), target, counts.data(),
                                            starts.data(), recv.types.data(), MPI_COMM_WORLD);
    const bench::Figure figure = bench::measure(pair, timing, {{source, bytes}, {target, bytes}});
    if (in_mapping)
        munmap(source, bytes), munmap(target, bytes);
    else
        std::free(source), std::free(target);
    return figure;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    bool in_mapping = false;
    const bench::Timing timing = bench::read_timing(
        argc, argv, {.from_bytes = 64, .to_bytes = 256, .rounds = 9, .batch_us = 20'000, .figure_us = 4e6},
        [&](const std::string& word, const auto&) {
            in_mapping |= word == "--private";
            return word == "--private";
        });
    if (timing.from_bytes % bench::ranks() != 0)
        bench::give_up("the edges must be multiples of the number of ranks");
    if (bench::rank() == 0)
        std::printf(
            "%d ranks; a cube of complex doubles, cut along one axis, comes to be cut along another\n"
            "%6s %10s %12s %12s %7s\n",
            bench::ranks(), "edge", "axes", "ours us", "MPI us", "ratio");
    double product = 1;
    int figures = 0;
    for (long edge = timing.from_bytes; edge <= timing.to_bytes; edge *= 2)
        for (int from = 0; from < 3; ++from)
            for (int to = 0; to < 3; ++to) {
                if (from == to) continue;
                const bench::Figure figure = measure(static_cast<int>(edge), from, to, timing, in_mapping);
                product *= figure.ratio(), ++figures;
                if (bench::rank() == 0)
                    std::printf("%6ld %5d to %d %12.1f %12.1f %7.2f\n", edge, from, to, figure.ours_us,
                                figure.library_us, figure.ratio());
            }
    if (bench::rank() == 0) std::printf("geometric mean %.2f\n", std::pow(product, 1.0 / figures));
    MPI_Finalize();
}
