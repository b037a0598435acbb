// SPDX-License-Identifier: BSD-3-Clause
//
// Times MPI_X against the MPI library's own function, in one process, in turns (turns.h): what a program
// gains. Run under `coco run` (or without: then both are the library).
//
//   mpiexec -n 4 coco run build/mpich/bench/collective alltoall bcast --to 1M
//
// Options: --from BYTES --to BYTES (powers of two), --rounds N, --batch-us T, --figure-us T (about so long
// for a size: fewer rounds, 3 at least, and fewer calls in each), --settle-us T (about so long MPI_X is
// called before a size is measured, and learns), --csv, --cold (the paper's method: caches flushed, own
// buffers touched, barrier, one call), --fresh (each rank writes to its send buffer before each call, its
// buffer of a bcast), --private (static buffers instead of heap).
#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "calls.h"
#include "turns.h"

namespace {

struct Options {
    std::vector<std::string> collectives;
    bool outside_heap = false;
    bench::Timing timing;
};

void run(const std::string& name, const Options& o, bench::Blocks& b) {
    std::string ranks = std::to_string(bench::ranks());
    bench::Table table(name + ", " + ranks + " ranks", name + "," + ranks, o.timing.csv);
    for (long bytes = o.timing.from_bytes; bytes <= o.timing.to_bytes; bytes *= 2) {
        const std::size_t one = static_cast<std::size_t>(bytes), all = one * bench::ranks();
        table.row(bytes, bench::measure(bench::calls_of(name, b, bytes), o.timing,
                                        {{b.send, name.starts_with("alltoall") ? all : one}, {b.recv, all}}));
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
    bench::Blocks b{memory_for(o, bytes), memory_for(o, bytes), std::vector<int>(n), std::vector<int>(n),
                    std::vector<MPI_Datatype>(n, MPI_BYTE)};
    std::memset(b.send, 1, bytes);
    std::memset(b.recv, 2, bytes);
    for (const std::string& name : o.collectives) run(name, o, b);
    MPI_Finalize();
}
