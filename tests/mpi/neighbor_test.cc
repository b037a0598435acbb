// SPDX-License-Identifier: BSD-3-Clause
//
// Seeded differential test of the five collectives among neighbours, against the MPI library's own functions,
// and some topologies of which one of the libraries is not capable. Usage: neighbor_test [SEED [CALLS]].
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "neighbor_player.h"
#include "support/open_comm.h"

namespace {

using namespace test;

// That ours does: a star whose middle sends to all and hears nothing, then the other way round.
void check_w_on_stars() {
    const int rank = world_rank(), size = world_size();
    for (bool inward : {false, true}) {
        const bool middle = rank == 0;
        std::vector<int> others;
        for (int r = 1; r < size; ++r) others.push_back(r);
        std::vector<int> in = middle   ? (inward ? others : std::vector<int>{})
                              : inward ? std::vector<int>{}
                                       : std::vector<int>{0};
        std::vector<int> out = middle   ? (inward ? std::vector<int>{} : others)
                               : inward ? std::vector<int>{0}
                                        : std::vector<int>{};
        const int sources = static_cast<int>(in.size()), destinations = static_cast<int>(out.size());
        in.resize(in.size() + 1);  // Open MPI takes no null pointer for an empty list
        out.resize(out.size() + 1);
        MPI_Comm comm;
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, sources, in.data(), MPI_UNWEIGHTED, destinations,
                                       out.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
        const std::vector<int> ones(static_cast<std::size_t>(size), 1);
        const std::vector<MPI_Datatype> types(ones.size(), MPI_INT);
        std::vector<MPI_Aint> at;
        for (int r = 0; r < size; ++r) at.push_back(r * static_cast<MPI_Aint>(sizeof(int)));
        int* sent = static_cast<int*>(std::malloc(ones.size() * sizeof(int)));
        int* came = static_cast<int*>(std::malloc(ones.size() * sizeof(int)));
        test::open_comm(comm);  // the library may hang in w
        for (int i = 0; i < size; ++i) sent[i] = 100 * rank + i;
        MPI_Neighbor_alltoallw(sent, ones.data(), at.data(), types.data(), came, ones.data(), at.data(),
                               types.data(), comm);
        for (int i = 0; i < sources; ++i)
            CHECK(came[i] == 100 * in[static_cast<std::size_t>(i)] + (inward ? 0 : rank - 1));
        std::free(sent);
        std::free(came);
        MPI_Comm_free(&comm);
    }
}

#ifdef MPICH_VERSION
// A rank that sends to nobody names no type and no buffer, and one that receives nothing none either: MPICH
// takes that.
void check_nothing_of_no_type() {
    const int rank = world_rank(), size = world_size();
    const int before = rank - 1, behind = rank + 1;
    MPI_Comm chain;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank > 0, &before, MPI_UNWEIGHTED, behind < size, &behind,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &chain);
    test::open_comm(chain);
    for (int i = 0; i < 6; ++i) {
        int sent = rank * 10 + i, came = -1;
        const bool sends = behind<size, receives = rank> 0;
        MPI_Neighbor_allgather(sends ? &sent : nullptr, sends, sends ? MPI_INT : MPI_DATATYPE_NULL,
                               receives ? &came : nullptr, receives, receives ? MPI_INT : MPI_DATATYPE_NULL,
                               chain);
        CHECK(came == (receives ? sent - 10 : -1));
    }
    MPI_Comm_free(&chain);
}
#else
void check_nothing_of_no_type() {}
#endif

// One half of the ranks sends short blocks to the other half, and that sends long ones back.
void check_unlike_sizes() {
    const int rank = world_rank(), size = world_size();
    const bool low = rank < size / 2;
    std::vector<int> others;
    for (int r = low ? size / 2 : 0; r < (low ? size : size / 2); ++r) others.push_back(r);
    const int degree = static_cast<int>(others.size());
    MPI_Comm comm;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, others.data(), MPI_UNWEIGHTED, degree,
                                   others.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    constexpr int kShort = 2, kLong = 3000;
    const int out = low ? kShort : kLong, in = low ? kLong : kShort;
    std::vector<int> sent(static_cast<std::size_t>(degree * out)),
        came(static_cast<std::size_t>(degree * in));
    auto value = [](int from, int block, int i) { return from * 1000000 + block * 10000 + i; };
    test::open_comm(comm);  // Open MPI 4.1 cannot do what follows
    for (int call = 0; call < 6; ++call)
        for (bool personal : {true, false}) {
            for (int b = 0; b < degree; ++b)
                for (int i = 0; i < out; ++i)
                    sent[static_cast<std::size_t>(b * out + i)] = value(rank, b, i) + call;
            std::fill(came.begin(), came.end(), -1);
            (personal ? MPI_Neighbor_alltoall : MPI_Neighbor_allgather)(sent.data(), out, MPI_INT,
                                                                        came.data(), in, MPI_INT, comm);
            const int mine = low ? rank : rank - size / 2;
            for (int b = 0; b < degree; ++b)
                for (int i = 0; i < in; ++i)
                    CHECK(came[static_cast<std::size_t>(b * in + i)] ==
                          value(others[static_cast<std::size_t>(b)], personal ? mine : 0, i) + call);
        }
    MPI_Comm_free(&comm);
}

// A rank that sends to nobody may say what it likes of what it would send.
void check_idle_sender() {
    const int rank = world_rank(), size = world_size();
    const bool middle = rank == 0;
    std::vector<int> others;
    for (int r = 1; r < size; ++r) others.push_back(r);
    const int to_middle = 0;
    MPI_Comm comm;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, middle ? size - 1 : 0, others.data(), MPI_UNWEIGHTED,
                                   middle ? 0 : 1, &to_middle, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    test::open_comm(comm);
    MPI_Datatype gapped;
    const int ints = 100000;
    MPI_Type_vector(ints, 1, 2, MPI_INT, &gapped);
    MPI_Type_commit(&gapped);
    std::vector<int> sent(2 * ints, rank), came(static_cast<std::size_t>(size), -1);
    for (int i = 0; i < 6; ++i)
        MPI_Neighbor_allgather(sent.data(), 1, middle ? gapped : MPI_INT, came.data(), 1, MPI_INT, comm);
    for (int r = 1; middle && r < size; ++r) CHECK(came[static_cast<std::size_t>(r - 1)] == r);
    MPI_Type_free(&gapped);
    MPI_Comm_free(&comm);
}

void check_particulars() {
    const bool ours = std::getenv("LD_PRELOAD") != nullptr && std::getenv("COCO_DISABLE") == nullptr &&
                      std::getenv("COCO_HEAP_LIMIT") == nullptr;
    if (ours && world_size() > 1) {
        check_w_on_stars();
        check_unlike_sizes();
    }
    check_nothing_of_no_type();
    if (world_size() > 1) check_idle_sender();
}

}  // namespace

int main(int argc, char** argv) {
    return play_all<NeighborPlayer>(argc, argv, "neighbor", 1000, check_particulars);
}
