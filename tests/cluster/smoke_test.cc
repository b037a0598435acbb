// SPDX-License-Identifier: BSD-3-Clause
//
// Which ranks share memory on several hosts: every rank lists the heaps mapped into it, by inode, which
// the one kernel below all hosts gives once. Ranks of one host come to share theirs, ranks of different hosts
// never do, although their process ids and descriptors are the same. Results are right on all communicators
// meanwhile. Usage: smoke_test HOSTS
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "../support/check.h"

namespace {

using Inode = unsigned long;

// The inodes of heaps that are mapped here: `ADDRESSES RIGHTS OFFSET DEVICE INODE /memfd:coco-heap
// (deleted)`.
std::set<Inode> mapped_heaps() {
    std::set<Inode> found;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find("/memfd:coco-heap") == std::string::npos) continue;
        std::istringstream words(line);
        std::string skipped;
        Inode inode = 0;
        words >> skipped >> skipped >> skipped >> skipped >> inode;
        found.insert(inode);
    }
    return found;
}

// Ten calls: more than a communicator takes to be set up.
void exchange(MPI_Comm comm) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int call = 0; call < 10; ++call) {
        const int ints = 1 << call;
        std::vector<int> from(static_cast<std::size_t>(ints * size)), to(from.size(), -1),
            wanted(from.size());
        for (int i = 0; i < ints * size; ++i) {
            from[static_cast<std::size_t>(i)] = rank * 100000 + i / ints * 1000 + call;
            wanted[static_cast<std::size_t>(i)] = i / ints * 100000 + rank * 1000 + call;
        }
        MPI_Alltoall(from.data(), ints, MPI_INT, to.data(), ints, MPI_INT, comm);
        CHECK(to == wanted);
    }
}

constexpr int kMost = 64;
struct Rank {
    char host[64];
    int pid, heaps;
    Inode heap[kMost];
};

std::vector<Rank> all_ranks() {
    Rank mine{};
    gethostname(mine.host, sizeof mine.host - 1);
    mine.pid = getpid();
    for (Inode inode : mapped_heaps())
        if (mine.heaps < kMost) mine.heap[mine.heaps++] = inode;
    std::vector<Rank> all(static_cast<std::size_t>(test::world_size()));
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
    return all;
}

bool share_heap(const Rank& a, const Rank& b) {
    return std::find_first_of(a.heap, a.heap + a.heaps, b.heap, b.heap + b.heaps) != a.heap + a.heaps;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int rank = test::world_rank();
    MPI_Comm mates;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &mates);
    exchange(MPI_COMM_WORLD);
    exchange(mates);
    exchange(MPI_COMM_WORLD);

    const std::vector<Rank> all = all_ranks();
    const Rank& mine = all[static_cast<std::size_t>(rank)];
    std::set<std::string> hosts;
    int on_this_host = 0, equal_pids = 0, mates_size;
    MPI_Comm_size(mates, &mates_size);
    for (const Rank& other : all) {
        const bool here = std::string(other.host) == mine.host;
        hosts.insert(other.host);
        on_this_host += here;
        equal_pids += !here && other.pid == mine.pid;
        CHECK(share_heap(mine, other) == here);
    }
    CHECK(mine.heaps == on_this_host);
    CHECK(mates_size == on_this_host);  // what the MPI library says
    CHECK(static_cast<int>(hosts.size()) == (argc > 1 ? std::atoi(argv[1]) : 1));
    if (rank == 0) std::printf("%d ranks of other hosts have the process id of rank 0\n", equal_pids);
    MPI_Comm_free(&mates);
    const int verdict = test::finish("smoke");
    MPI_Finalize();
    return verdict;
}
