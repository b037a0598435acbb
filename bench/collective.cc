// SPDX-License-Identifier: BSD-3-Clause
//
// Times MPI_X against the MPI library's own function, in one process, in turns (turns.h): what a program
// gains. Run under `coco run` (or without: then both are the library).
//
//   mpiexec -n 4 coco run build/mpich/bench/collective alltoall bcast --to 1M
//
// Options: --from BYTES --to BYTES (powers of two), --rounds N, --batch-us T, --figure-us T (about so long
// for a size: fewer rounds, 3 at least, and fewer calls in each), --csv, --cold (the paper's method: caches
// flushed, own buffers touched, barrier, one call), --private (static buffers instead of heap).
#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "turns.h"

namespace {

struct Options {
    std::vector<std::string> collectives;
    bool outside_heap = false;
    bench::Timing timing;
};

struct Blocks {
    char *send, *recv;
    std::vector<int> counts, starts;
    std::vector<MPI_Datatype> types;
};

// The two ways to call one collective with blocks of `bytes`.
bench::Pair calls_of(const std::string& name, Blocks& b, long bytes) {
    using bench::pair_of;
    int n = static_cast<int>(bytes);
    MPI_Comm world = MPI_COMM_WORLD;
    for (int r = 0; r < bench::ranks(); ++r) {
        b.counts[r] = n;
        b.starts[r] = r * n;
    }
    const int *counts = b.counts.data(), *starts = b.starts.data();
    const MPI_Datatype* types = b.types.data();
    if (name == "alltoall")
        return pair_of(&MPI_Alltoall, "PMPI_Alltoall", b.send, n, MPI_BYTE, b.recv, n, MPI_BYTE, world);
    if (name == "alltoallv")
        return pair_of(&MPI_Alltoallv, "PMPI_Alltoallv", b.send, counts, starts, MPI_BYTE, b.recv, counts,
                       starts, MPI_BYTE, world);
    if (name == "alltoallw")
        return pair_of(&MPI_Alltoallw, "PMPI_Alltoallw", b.send, counts, starts, types, b.recv, counts,
                       starts, types, world);
    if (name == "allgather")
        return pair_of(&MPI_Allgather, "PMPI_Allgather", b.send, n, MPI_BYTE, b.recv, n, MPI_BYTE, world);
    if (name == "allgatherv")
        return pair_of(&MPI_Allgatherv, "PMPI_Allgatherv", b.send, n, MPI_BYTE, b.recv, counts, starts,
                       MPI_BYTE, world);
    if (name == "bcast") return pair_of(&MPI_Bcast, "PMPI_Bcast", b.send, n, MPI_BYTE, 0, world);
    bench::give_up("unknown collective " + name +
                   ": alltoall alltoallv alltoallw allgather allgatherv bcast");
}

void run(const std::string& name, const Options& o, Blocks& b) {
    std::string ranks = std::to_string(bench::ranks());
    bench::Table table(name + ", " + ranks + " ranks", name + "," + ranks, o.timing.csv);
    for (long bytes = o.timing.from_bytes; bytes <= o.timing.to_bytes; bytes *= 2) {
        std::size_t total = static_cast<std::size_t>(bytes) * bench::ranks();
        table.row(bytes,
                  bench::measure(calls_of(name, b, bytes), o.timing, {{b.send, total}, {b.recv, total}}));
    }
    table.end();
}

Options parse(int argc, char** argv) {
    Options o;
    o.timing = bench::read_timing(argc, argv, {}, [&](const std::string& word, const auto&) {
        if (word == "--private")
            o.outside_heap = true;
        else if (word[0] != '-')
            o.collectives.push_back(word);
        else
            return false;
        return true;
    });
    if (o.collectives.empty()) o.collectives = {"alltoall", "alltoallv", "allgather", "bcast"};
    return o;
}

char* memory_for(const Options& o, std::size_t bytes) {
    static char outside[2][64 << 20];
    static int used = 0;
    if (o.outside_heap && bytes <= sizeof outside[0]) return outside[used++];
    void* at = nullptr;
    if (std::getenv("BENCH_ALLOC_MEM") != nullptr)
        MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), MPI_INFO_NULL, &at);
    else if (posix_memalign(&at, 4096, bytes) != 0)
        std::abort();
    return static_cast<char*>(at);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Options o = parse(argc, argv);
    std::size_t n = bench::ranks(), bytes = static_cast<std::size_t>(o.timing.to_bytes) * n;
    Blocks b{memory_for(o, bytes), memory_for(o, bytes), std::vector<int>(n), std::vector<int>(n),
             std::vector<MPI_Datatype>(n, MPI_BYTE)};
    std::memset(b.send, 1, bytes);
    std::memset(b.recv, 2, bytes);
    for (const std::string& name : o.collectives) run(name, o, b);
    MPI_Finalize();
}
