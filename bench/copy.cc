// SPDX-License-Identifier: BSD-3-Clause
//
// How near large alltoalls come to plain memcpy: the same bytes between the same buffers (a peer's send
// buffer on its shared heap, mapped here as libcoco maps it, into the own receive buffer), by MPI_Alltoall
// and by a loop of memcpy on all ranks at once, without any synchronisation. In turns; a round counts as its
// slowest rank, a figure is the median of the rounds; the share is that of neighbouring rounds. Run under
// `coco run`.
//
//   mpiexec -n 2 coco run build/mpich/bench/copy [--rounds N] [BLOCK_BYTES...]
#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

int g_rank, g_ranks;

// Where a buffer is, for other processes.
struct Place {
    pid_t process;
    int descriptor;
    std::uint64_t offset;
};

struct Mapping {
    std::uint64_t begin, end, offset, inode;
};

Mapping mapping_of(const void* buffer) {
    auto at = reinterpret_cast<std::uint64_t>(buffer);
    char line[512];
    Mapping m{};
    bool found = false;
    std::FILE* maps = std::fopen("/proc/self/maps", "r");
    while (!found && maps != nullptr && std::fgets(line, sizeof line, maps) != nullptr)
        found = std::sscanf(line, "%" SCNx64 "-%" SCNx64 " rw-s %" SCNx64 " %*s %" SCNu64, &m.begin, &m.end,
                            &m.offset, &m.inode) == 4 &&
                m.begin <= at && at < m.end;
    if (maps != nullptr) std::fclose(maps);
    if (found) return m;
    std::fprintf(stderr, "the buffer is not on a shared heap: run this under coco run\n");
    std::exit(1);
}

Place place_of(const void* buffer) {
    Mapping m = mapping_of(buffer);
    for (int descriptor = 0; descriptor < 65536; ++descriptor) {
        struct stat status;
        if (fstat(descriptor, &status) == 0 && status.st_ino == m.inode)
            return {getpid(), descriptor, m.offset + reinterpret_cast<std::uint64_t>(buffer) - m.begin};
    }
    std::fprintf(stderr, "no descriptor of the shared heap\n");
    std::exit(1);
}

const char* open_peer(const Place& place, std::size_t bytes) {
    std::string path = "/proc/" + std::to_string(place.process) + "/fd/" + std::to_string(place.descriptor);
    int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
    std::uint64_t begin = place.offset / 4096 * 4096;
    void* at = mmap(nullptr, bytes + place.offset - begin, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
                    static_cast<off_t>(begin));
    if (at == MAP_FAILED) {
        std::perror(path.c_str());
        std::exit(1);
    }
    close(descriptor);
    return static_cast<const char*>(at) + (place.offset - begin);
}

struct Buffers {
    char *send, *recv;
    std::vector<const char*> peers;  // their send buffers
};

Buffers make_buffers(std::size_t bytes) {
    Buffers b{};
    for (char** side : {&b.send, &b.recv}) {
        void* at = nullptr;
        if (posix_memalign(&at, 4096, bytes) != 0) std::abort();
        *side = static_cast<char*>(std::memset(at, g_rank + 1, bytes));
    }
    Place mine = place_of(b.send);
    std::vector<Place> places(static_cast<std::size_t>(g_ranks));
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, places.data(), sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < g_ranks; ++r)
        b.peers.push_back(r == g_rank ? b.send : open_peer(places[static_cast<std::size_t>(r)], bytes));
    return b;
}

void copy_plainly(const Buffers& b, std::size_t block) {
    for (int i = 0; i < g_ranks; ++i) {
        auto peer = static_cast<std::size_t>((g_rank + i) % g_ranks);
        std::memcpy(b.recv + peer * block, b.peers[peer] + static_cast<std::size_t>(g_rank) * block, block);
    }
}

void exchange(const Buffers& b, std::size_t block) {
    int n = static_cast<int>(block);
    MPI_Alltoall(b.send, n, MPI_BYTE, b.recv, n, MPI_BYTE, MPI_COMM_WORLD);
}

// Seconds a call of the slowest rank.
double time_of(void (*call)(const Buffers&, std::size_t), const Buffers& b, std::size_t block, int calls) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int i = 0; i < calls; ++i) call(b, block);
    double mine = (MPI_Wtime() - begin) / calls, slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

void measure(const Buffers& b, std::size_t block, int rounds) {
    constexpr double kRoundSeconds = 0.02;
    double once = std::max(time_of(copy_plainly, b, block, 2), time_of(exchange, b, block, 4));
    int calls = static_cast<int>(std::clamp(kRoundSeconds / once, 2.0, 1000.0));
    std::vector<double> ours, plain, share;
    for (int i = 0; i < rounds; ++i) {
        if (i % 2 == 0) plain.push_back(time_of(copy_plainly, b, block, calls));
        ours.push_back(time_of(exchange, b, block, calls));
        if (i % 2 == 1) plain.push_back(time_of(copy_plainly, b, block, calls));
        share.push_back(plain.back() / ours.back());
    }
    double bytes = static_cast<double>(block) * g_ranks;
    if (g_rank == 0)
        std::printf("%10zu %14.2f %14.2f %8.2f\n", block, bytes / median(ours) / 1e9,
                    bytes / median(plain) / 1e9, median(share));
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_ranks);
    int rounds = 41;
    std::vector<std::size_t> blocks;
    for (int i = 1; i < argc; ++i) {
        if (std::string(argv[i]) == "--rounds" && i + 1 < argc)
            rounds = std::max(1, std::atoi(argv[++i]));
        else
            blocks.push_back(std::strtoull(argv[i], nullptr, 10));
    }
    if (blocks.empty()) blocks = {64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20};
    Buffers b =
        make_buffers(*std::max_element(blocks.begin(), blocks.end()) * static_cast<std::size_t>(g_ranks));
    if (g_rank == 0)
        std::printf("alltoall against memcpy, %d ranks, GB/s a rank\n%10s %14s %14s %8s\n", g_ranks, "block",
                    "MPI_Alltoall", "memcpy", "share");
    for (std::size_t block : blocks) measure(b, block, rounds);
    MPI_Finalize();
}
