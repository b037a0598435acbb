// SPDX-License-Identifier: BSD-3-Clause
//
// A rank that waits in a collective still makes progress on its other messages, as MPI promises. A posts a
// receive for a message too large to be sent unasked and enters the collective; B sends it, blocked until A
// answers, and only then joins. A collective that waits without driving MPI hangs here. Beyond two ranks all
// wait for the last one.
#include <mpi.h>

#include <vector>

#include "call.h"

namespace {

using namespace test;

constexpr int kMessageBytes = 8 << 20;

void enter(Kind kind) {
    Call c;
    c.kind = kind;
    c.root = world_size() - 1;
    const auto ranks = static_cast<std::size_t>(world_size());
    const bool many = kind == Kind::alltoallv || kind == Kind::alltoallw || kind == Kind::allgatherv;
    if (many) {
        std::vector<int> ones(ranks, 1), at(ranks);
        for (std::size_t i = 0; i < ranks; ++i)
            at[i] = static_cast<int>(i * (kind == Kind::alltoallw ? 4 : 1));
        std::vector<MPI_Datatype> types(kind == Kind::alltoallw ? std::max<std::size_t>(ranks, 2) : 1,
                                        MPI_INT);
        c.send = c.recv = {types, ones, at};
        if (kind == Kind::allgatherv) c.send = {{MPI_INT}, {1}, {}};
    } else {
        c.send = c.recv = {{MPI_INT}, {1}, {}};
    }
    verify(c);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int rank = world_rank(), late = world_size() - 1;
    warm_up(MPI_COMM_WORLD);
    std::vector<char> message(kMessageBytes, static_cast<char>(rank));
    for (int k = 0; k < 2 * kKinds; ++k) {
        const Kind kind = static_cast<Kind>(k % kKinds);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0 && late != 0) {
            MPI_Request request;
            MPI_Irecv(message.data(), kMessageBytes, MPI_CHAR, late, k, MPI_COMM_WORLD, &request);
            enter(kind);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK(message.front() == late && message.back() == late);
        } else {
            if (rank == late && late != 0)
                MPI_Send(message.data(), kMessageBytes, MPI_CHAR, 0, k, MPI_COMM_WORLD);
            enter(kind);
        }
    }
    const int verdict = finish("progress");
    MPI_Finalize();
    return verdict;
}
