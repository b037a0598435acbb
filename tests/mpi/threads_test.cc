// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_THREAD_MULTIPLE: several threads of each rank, each on its own communicator, run collectives at the
// same time; threads start in another order on each rank, so that no rank's order can be what the others wait
// for.
#include <mpi.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/check.h"

namespace {

using namespace test;

constexpr int kThreads = 3;
constexpr int kCalls = 60;

int expected(int from, int to, int thread, int call, int i) {
    return ((from * 16 + to) * 16 + thread) * 4096 + call * 16 + i % 16;
}

// Returns: wrong results.
int work(MPI_Comm comm, int thread) {
    int rank, size, wrong = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int call = 0; call < kCalls; ++call) {
        const int ints = call % 3 == 0 ? 2 : call % 3 == 1 ? 700 : 9000;
        std::vector<int> from(static_cast<std::size_t>(size * ints)), to(from.size());
        auto at = [ints](int block, int i) { return static_cast<std::size_t>(block * ints + i); };
        for (int peer = 0; peer < size; ++peer)
            for (int i = 0; i < ints; ++i) from[at(peer, i)] = expected(rank, peer, thread, call, i);
        MPI_Alltoall(from.data(), ints, MPI_INT, to.data(), ints, MPI_INT, comm);
        for (int peer = 0; peer < size; ++peer)
            for (int i = 0; i < ints; ++i) wrong += to[at(peer, i)] != expected(peer, rank, thread, call, i);
        MPI_Allgather(from.data(), ints, MPI_INT, to.data(), ints, MPI_INT, comm);
        for (int peer = 0; peer < size; ++peer)
            for (int i = 0; i < ints; ++i) wrong += to[at(peer, i)] != expected(peer, 0, thread, call, i);
        const int root = call % size;
        MPI_Bcast(from.data(), ints, MPI_INT, root, comm);
        for (int i = 0; i < ints; ++i) wrong += from[at(0, i)] != expected(root, 0, thread, call, i);
    }
    return wrong;
}

}  // namespace

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE) {
        MPI_Finalize();
        return 77;
    }
    std::vector<MPI_Comm> comms(kThreads);
    for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
        const int mine = (i + world_rank()) % kThreads;
        threads.emplace_back([&, mine] { wrong += work(comms[static_cast<std::size_t>(mine)], mine); });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
    const int verdict = finish("threads");
    MPI_Finalize();
    return verdict;
}
