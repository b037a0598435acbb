// SPDX-License-Identifier: BSD-3-Clause
//
// Times MPI_X against the MPI library's own function, in one process, in turns: what a program gains.
// Each round is a barrier and a batch of calls of the one, then the same of the other; a round counts as its
// slowest rank, a figure is the median of the rounds. Run under `coco run` (or without: then both are the
// library).
//
//   mpiexec -n 4 coco run build/mpich/bench/collective alltoall bcast --to 1M
//
// Options: --from BYTES --to BYTES (powers of two), --rounds N, --batch-us T, --csv, --cold (the paper's
// method: caches flushed, own buffers touched, barrier, one call), --private (static buffers instead of
// heap).
#include <dlfcn.h>
#include <immintrin.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

struct Options {
    std::vector<std::string> collectives;
    long from_bytes = 8, to_bytes = 1 << 20;
    int rounds = 15;
    double batch_us = 3000;
    bool csv = false, cold = false, fresh = false, outside_heap = false;
};

int g_rank, g_ranks;

void* own_function(const char* name) {
    for (const char* library : {"libmpich.so.12", "libmpi.so.12", "libmpi.so.40"})
        if (void* handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY))
            if (void* address = dlsym(handle, name)) return address;
    std::fprintf(stderr, "no %s in the loaded MPI library\n", name);
    std::exit(1);
}

template <class F>
F own(F, const char* name) {
    return reinterpret_cast<F>(own_function(name));
}

struct Buffers {
    char *send, *recv;
    std::vector<int> counts, starts;
    std::vector<MPI_Datatype> types;
};

long parse_bytes(const char* text) {
    char* end;
    long value = std::strtol(text, &end, 10);
    for (char unit : std::string("KMG")) {
        value *= *end == unit ? 1024 : 1;
        if (*end != 0 && *end != unit) value *= 1024;
        if (*end == unit || *end == 0) break;
    }
    return value;
}

using Call = std::function<void()>;
struct Pair {
    Call ours, library;
};

// The two ways to call one collective with blocks of `bytes`.
Pair calls_of(const std::string& name, Buffers& b, long bytes) {
    int n = static_cast<int>(bytes);
    MPI_Comm world = MPI_COMM_WORLD;
    for (int r = 0; r < g_ranks; ++r) {
        b.counts[r] = n;
        b.starts[r] = r * n;
    }
    if (name == "alltoall") {
        auto f = own(&MPI_Alltoall, "PMPI_Alltoall");
        return {[=] { MPI_Alltoall(b.send, n, MPI_BYTE, b.recv, n, MPI_BYTE, world); },
                [=] { f(b.send, n, MPI_BYTE, b.recv, n, MPI_BYTE, world); }};
    }
    const int *counts = b.counts.data(), *starts = b.starts.data();
    const MPI_Datatype* types = b.types.data();
    if (name == "alltoallv") {
        auto f = own(&MPI_Alltoallv, "PMPI_Alltoallv");
        return {
            [=] { MPI_Alltoallv(b.send, counts, starts, MPI_BYTE, b.recv, counts, starts, MPI_BYTE, world); },
            [=] { f(b.send, counts, starts, MPI_BYTE, b.recv, counts, starts, MPI_BYTE, world); }};
    }
    if (name == "alltoallw") {
        auto f = own(&MPI_Alltoallw, "PMPI_Alltoallw");
        return {[=] { MPI_Alltoallw(b.send, counts, starts, types, b.recv, counts, starts, types, world); },
                [=] { f(b.send, counts, starts, types, b.recv, counts, starts, types, world); }};
    }
    if (name == "allgather") {
        auto f = own(&MPI_Allgather, "PMPI_Allgather");
        return {[=] { MPI_Allgather(b.send, n, MPI_BYTE, b.recv, n, MPI_BYTE, world); },
                [=] { f(b.send, n, MPI_BYTE, b.recv, n, MPI_BYTE, world); }};
    }
    if (name == "allgatherv") {
        auto f = own(&MPI_Allgatherv, "PMPI_Allgatherv");
        return {[=] { MPI_Allgatherv(b.send, n, MPI_BYTE, b.recv, counts, starts, MPI_BYTE, world); },
                [=] { f(b.send, n, MPI_BYTE, b.recv, counts, starts, MPI_BYTE, world); }};
    }
    if (name == "bcast") {
        auto f = own(&MPI_Bcast, "PMPI_Bcast");
        return {[=] { MPI_Bcast(b.send, n, MPI_BYTE, 0, world); }, [=] { f(b.send, n, MPI_BYTE, 0, world); }};
    }
    std::fprintf(stderr, "unknown collective %s: alltoall alltoallv alltoallw allgather allgatherv bcast\n",
                 name.c_str());
    std::exit(2);
}

void flush_cache(const char* at, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += 64) _mm_clflush(at + i);
    _mm_mfence();
}

// Microseconds a call of the slowest rank.
double time_batch(const Call& call, int batch, const Options& o, Buffers& b, std::size_t bytes) {
    static const auto allreduce = own(&MPI_Allreduce, "PMPI_Allreduce");
    static const auto barrier = own(&MPI_Barrier, "PMPI_Barrier");
    if (o.cold) {
        flush_cache(b.send, bytes);
        flush_cache(b.recv, bytes);
        for (std::size_t i = 0; i < bytes; i += 64) b.send[i]++, b.recv[i]++;
    }
    barrier(MPI_COMM_WORLD);
    double seconds = 0, begin = MPI_Wtime();
    for (int i = 0; i < batch; ++i) {
        if (o.fresh) {
            for (std::size_t at = 0; at < bytes; at += 64) b.send[at]++;
            begin = MPI_Wtime();
        }
        call();
        if (o.fresh) seconds += MPI_Wtime() - begin;
    }
    if (!o.fresh) seconds = MPI_Wtime() - begin;
    double mine = seconds / batch * 1e6, slowest = 0;
    allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

struct Figure {
    double ours_us, library_us;
    double ratio() const { return library_us / ours_us; }
};

Figure measure(const Pair& pair, const Options& o, Buffers& b, std::size_t bytes) {
    double guess = 0;
    for (int i = 0; i < 3; ++i) guess = time_batch(pair.library, o.cold ? 1 : 10, o, b, bytes);
    time_batch(pair.ours, 10, o, b, bytes);
    int batch = o.cold ? 1 : static_cast<int>(std::clamp(o.batch_us / std::max(guess, 0.05), 5.0, 20000.0));
    int rounds = o.cold ? o.rounds * 16 : o.rounds;
    std::vector<double> ours, library;
    for (int i = 0; i < rounds; ++i) {
        ours.push_back(time_batch(pair.ours, batch, o, b, bytes));
        library.push_back(time_batch(pair.library, batch, o, b, bytes));
    }
    return {median(ours), median(library)};
}

void run(const std::string& name, const Options& o, Buffers& b) {
    double log_sum = 0, log_large = 0;
    int sizes = 0, large = 0;
    double worst = 1e9;
    if (g_rank == 0 && !o.csv)
        std::printf("%s, %d ranks\n%10s %12s %12s %8s\n", name.c_str(), g_ranks, "bytes", "MPI_X us",
                    "library us", "ratio");
    for (long bytes = o.from_bytes; bytes <= o.to_bytes; bytes *= 2) {
        Figure f = measure(calls_of(name, b, bytes), o, b, static_cast<std::size_t>(bytes) * g_ranks);
        log_sum += std::log(f.ratio());
        ++sizes;
        if (bytes >= 8192) log_large += std::log(f.ratio()), ++large;
        worst = std::min(worst, f.ratio());
        if (g_rank != 0) continue;
        std::printf(o.csv ? "%s,%d,%ld,%.3f,%.3f,%.3f\n" : "%.0s%.0d%10ld %12.3f %12.3f %8.2f\n",
                    name.c_str(), o.csv ? g_ranks : 0, bytes, f.ours_us, f.library_us, f.ratio());
        std::fflush(stdout);
    }
    if (g_rank == 0 && !o.csv)
        std::printf("%10s geometric mean %.2f, from 8 KiB up %.2f, worst %.2f\n", "",
                    std::exp(log_sum / sizes), large ? std::exp(log_large / large) : 0.0, worst);
}

Options parse(int argc, char** argv) {
    Options o;
    for (int i = 1; i < argc; ++i) {
        std::string a = argv[i];
        auto value = [&] {
            return i + 1 < argc
                       ? argv[++i]
                       : (std::fprintf(stderr, "%s needs a value\n", a.c_str()), std::exit(2), argv[0]);
        };
        if (a == "--from")
            o.from_bytes = parse_bytes(value());
        else if (a == "--to")
            o.to_bytes = parse_bytes(value());
        else if (a == "--rounds")
            o.rounds = std::atoi(value());
        else if (a == "--batch-us")
            o.batch_us = std::atof(value());
        else if (a == "--csv")
            o.csv = true;
        else if (a == "--cold")
            o.cold = true;
        else if (a == "--fresh")
            o.fresh = true;
        else if (a == "--private")
            o.outside_heap = true;
        else if (a[0] != '-')
            o.collectives.push_back(a);
        else
            std::fprintf(stderr, "unknown option %s\n", a.c_str()), std::exit(2);
    }
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
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_ranks);
    Options o = parse(argc, argv);
    std::size_t bytes = static_cast<std::size_t>(o.to_bytes) * g_ranks;
    Buffers b{memory_for(o, bytes), memory_for(o, bytes), std::vector<int>(g_ranks),
              std::vector<int>(g_ranks), std::vector<MPI_Datatype>(g_ranks, MPI_BYTE)};
    std::memset(b.send, 1, bytes);
    std::memset(b.recv, 2, bytes);
    for (const std::string& name : o.collectives) run(name, o, b);
    MPI_Finalize();
}
