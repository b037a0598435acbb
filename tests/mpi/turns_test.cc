// SPDX-License-Identifier: BSD-3-Clause
//
// Two threads of a rank use one communicator, strictly in turns, as MPI allows: what one thread remembers of
// the communicator must not outlive what the other does there. Small exchanges, which leave a new
// communicator without state, and large ones, which make it, alternate between the threads. So do bcasts of
// two sizes, among them empty ones, which may have no buffer, so that what a thread remembers differs from
// rank to rank, and alltoallv, which goes by the largest block of the call before, whichever thread made
// that.
//
//   turns_test        every rank uses both threads
//   turns_test mixed  rank 0 uses both, the others one
#include <mpi.h>

#include <cstdio>
#include <string>
#include <vector>

#include "helper.h"
#include "support/check.h"

namespace {

using namespace test;

constexpr int kSmall = 2, kLarge = 16384;  // ints

void exchange(MPI_Comm comm, int ints, int turn) {
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    std::vector<int> send, recv(static_cast<std::size_t>(ints * ranks), -1);
    for (int to = 0; to < ranks; ++to)
        send.insert(send.end(), static_cast<std::size_t>(ints), 1000 * turn + 10 * rank + to);
    MPI_Alltoall(send.data(), ints, MPI_INT, recv.data(), ints, MPI_INT, comm);
    for (int from = 0; from < ranks; ++from)
        for (int i : {0, ints - 1})
            CHECK(recv[static_cast<std::size_t>(from * ints + i)] == 1000 * turn + 10 * from + rank);
}

void take_turns(Helper& helper, bool both) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int turn = 0; turn < 24; ++turn) {
        const bool by_helper = turn % 2 == 0 && both;
        const int ints = turn % 3 == 1 ? kLarge : kSmall;
        auto work = [&] { exchange(comm, ints, turn); };
        by_helper ? helper.run(work) : work();
    }
    MPI_Comm_free(&comm);
}

void bcast(MPI_Comm comm, int ints, int root, int turn) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    std::vector<int> data(static_cast<std::size_t>(ints), rank == root ? turn : -1);
    int one;
    // An empty vector's buffer is null, but not rank 0's.
    MPI_Bcast(data.empty() && rank == 0 ? &one : data.data(), ints, MPI_INT, root, comm);
    for (const int value : data) CHECK(value == turn);
}

// More bcasts than ranks make before they compare lengths, each kind of which is the last before that in some
// round.
void bcast_in_turns(Helper& helper, bool both, int round) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int turn = round; turn < 420 + round; ++turn) {
        const int kind = turn % 4;
        const int ints = kind == 0 ? 1 : kind == 1 ? 600 : kind == 2 ? 0 : 1;
        auto work = [&] { bcast(comm, ints, turn / 4 % 2, turn); };
        kind == 1 && both ? helper.run(work) : work();
    }
    MPI_Comm_free(&comm);
}

void alltoallv(MPI_Comm comm, int ints, int turn) {
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const std::vector<int> counts(static_cast<std::size_t>(ranks), ints);
    std::vector<int> at, send, recv(static_cast<std::size_t>(ints * ranks), -1);
    for (int to = 0; to < ranks; ++to) {
        at.push_back(to * ints);
        send.insert(send.end(), static_cast<std::size_t>(ints), 1000 * turn + 10 * rank + to);
    }
    MPI_Alltoallv(send.data(), counts.data(), at.data(), MPI_INT, recv.data(), counts.data(), at.data(),
                  MPI_INT, comm);
    for (int from = 0; from < ranks; ++from)
        for (int i : {0, ints - 1})
            CHECK(recv[static_cast<std::size_t>(from * ints + i)] == 1000 * turn + 10 * from + rank);
}

// Small ones by one thread and large ones by the other, enough for both to be learned from.
void alltoallv_in_turns(Helper& helper, bool both) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int turn = 0; turn < 800; ++turn) {
        const bool is_large = turn % 8 >= 5;
        auto work = [&] { alltoallv(comm, is_large ? 1500 : kSmall, turn); };
        if (is_large && both)
            helper.run(work);
        else
            work();
    }
    MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    const bool mixed = argc > 1 && std::string(argv[1]) == "mixed";
    {
        Helper helper;
        const bool both = !mixed || world_rank() == 0;
        for (int round = 0; round < 20; ++round) take_turns(helper, both);
        for (int round = 0; round < 4; ++round) bcast_in_turns(helper, both, round);
        alltoallv_in_turns(helper, both);
    }
    const int status = finish("turns");
    MPI_Finalize();
    return status;
}
