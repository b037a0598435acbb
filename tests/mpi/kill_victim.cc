// SPDX-License-Identifier: BSD-3-Clause
//
// A job in which a rank dies by SIGKILL in the middle of a collective: the launcher must end the job, so
// ranks that wait in a collective for the dead one must be killable. Usage:
//
//   kill_victim die VICTIM [COLLECTIVE ...]   that rank dies while all call these (all eleven) in turn
//   kill_victim forever [COLLECTIVE ...]      nobody does by himself
//   kill_victim some [COLLECTIVE ...]         nobody does, and the job ends well after some calls of each
//
// Rank 0 says `looping` when somebody may be killed.
#include <mpi.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "support/open_comm.h"

namespace {

int g_rank = 0, g_ranks = 0;

// Everybody's neighbours are the two before him and the two behind.
MPI_Comm ring() {
    std::vector<int> peers;
    for (int distance : {-2, -1, 1, 2}) peers.push_back((g_rank + distance + 2 * g_ranks) % g_ranks);
    MPI_Comm comm;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 4, peers.data(), MPI_UNWEIGHTED, 4, peers.data(),
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    test::open_comm(comm);
    return comm;
}

struct Buffers {
    explicit Buffers(int bytes_of_block, int blocks)
        : bytes(bytes_of_block),
          counts(static_cast<std::size_t>(blocks), bytes),
          types(counts.size(), MPI_BYTE),
          send(counts.size() * static_cast<std::size_t>(bytes)),
          recv(send.size()) {
        for (int i = 0; i < blocks; ++i) at.push_back(i * bytes), wide_at.push_back(i * bytes);
    }
    int bytes;
    std::vector<int> counts, at;
    std::vector<MPI_Aint> wide_at;
    std::vector<MPI_Datatype> types;
    std::vector<char> send, recv;
};

void call(const std::string& name, Buffers& b, MPI_Comm world, MPI_Comm near) {
    const int n = b.bytes;
    void *from = b.send.data(), *to = b.recv.data();
    const int *counts = b.counts.data(), *at = b.at.data();
    const MPI_Datatype* types = b.types.data();
    if (name == "alltoall") MPI_Alltoall(from, n, MPI_BYTE, to, n, MPI_BYTE, world);
    if (name == "alltoallv") MPI_Alltoallv(from, counts, at, MPI_BYTE, to, counts, at, MPI_BYTE, world);
    if (name == "alltoallw") MPI_Alltoallw(from, counts, at, types, to, counts, at, types, world);
    if (name == "allgather") MPI_Allgather(from, n, MPI_BYTE, to, n, MPI_BYTE, world);
    if (name == "allgatherv") MPI_Allgatherv(from, n, MPI_BYTE, to, counts, at, MPI_BYTE, world);
    if (name == "bcast") MPI_Bcast(to, n, MPI_BYTE, 0, world);
    if (name == "neighbor_alltoall") MPI_Neighbor_alltoall(from, n, MPI_BYTE, to, n, MPI_BYTE, near);
    if (name == "neighbor_alltoallv")
        MPI_Neighbor_alltoallv(from, counts, at, MPI_BYTE, to, counts, at, MPI_BYTE, near);
    if (name == "neighbor_alltoallw") {
        const MPI_Aint* wide_at = b.wide_at.data();
        MPI_Neighbor_alltoallw(from, counts, wide_at, types, to, counts, wide_at, types, near);
    }
    if (name == "neighbor_allgather") MPI_Neighbor_allgather(from, n, MPI_BYTE, to, n, MPI_BYTE, near);
    if (name == "neighbor_allgatherv")
        MPI_Neighbor_allgatherv(from, n, MPI_BYTE, to, counts, at, MPI_BYTE, near);
}

void die(int) { kill(getpid(), SIGKILL); }

// In some milliseconds, wherever this rank is then.
void plan_to_die() {
    timeval now;
    gettimeofday(&now, nullptr);
    signal(SIGALRM, die);
    itimerval soon{{0, 0}, {0, 20'000 + now.tv_usec % 20'000}};
    setitimer(ITIMER_REAL, &soon, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
    constexpr int kTurnsBefore = 6, kTurnsOfSome = 12;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_ranks);
    const std::string what = argc > 1 ? argv[1] : "";
    const bool dies = what == "die";
    std::vector<std::string> names(argv + (dies ? 3 : 2), argv + argc);
    if (names.empty())
        names = {"alltoall",           "alltoallv",          "alltoallw",
                 "allgather",          "allgatherv",         "bcast",
                 "neighbor_alltoall",  "neighbor_alltoallv", "neighbor_alltoallw",
                 "neighbor_allgather", "neighbor_allgatherv"};
    MPI_Comm near = ring();
    // Small; more than goes along with lengths; longer than what goes round.
    std::vector<Buffers> sizes;
    for (int bytes : {8, 3000, 40'000}) sizes.emplace_back(bytes, g_ranks < 4 ? 4 : g_ranks);
    for (int turn = 0; what != "some" || turn < kTurnsOfSome; ++turn) {
        if (turn == kTurnsBefore && g_rank == 0) std::puts("looping"), std::fflush(stdout);
        if (turn == kTurnsBefore) MPI_Barrier(MPI_COMM_WORLD);
        if (turn == kTurnsBefore && dies && g_rank == std::atoi(argv[2])) plan_to_die();
        for (const std::string& name : names)
            for (Buffers& b : sizes) call(name, b, MPI_COMM_WORLD, near);
    }
    MPI_Comm_free(&near);
    MPI_Finalize();
}
