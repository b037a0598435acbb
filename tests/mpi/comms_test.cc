// SPDX-License-Identifier: BSD-3-Clause
//
// Communicators that come and go: 1,000 made, used until they are set up, and freed; then 1,000 grids and
// graphs whose neighbours exchange blocks; then 2,000 splits used once. Neither resident memory nor
// descriptors may grow once the first hundred have been. Before, calls in the functions that delete
// attributes.
#include <mpi.h>

#include <cstdio>
#include <vector>

#include "footprint.h"
#include "support/check.h"
#include "support/open_comm.h"

namespace {

using namespace test;

constexpr int kMade = 1000, kGraphs = 1000, kSplits = 2000, kSettled = 100;
constexpr long kGrowthKib = 8 << 10;  // the MPI libraries' own pools grow by some

void use(MPI_Comm comm, int calls) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    std::vector<int> from(static_cast<std::size_t>(size) * 64), to(from.size());
    for (int call = 0; call < calls; ++call) {
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = rank * 1000 + static_cast<int>(i / 64) + call;
        MPI_Alltoall(from.data(), 64, MPI_INT, to.data(), 64, MPI_INT, comm);
        for (std::size_t i = 0; i < to.size(); ++i) {
            const int wanted = static_cast<int>(i / 64) * 1000 + rank + call;
            if (to[i] != wanted) return CHECK_SAYING(false, "wrong data");
        }
    }
}

MPI_Comm make_split(int i) {
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, world_rank() % (1 + i % 2), i % 3 == 0 ? -world_rank() : 0, &comm);
    return comm;
}

// A ring: as a periodic grid, or as a graph.
MPI_Comm make_ring(int i) {
    MPI_Comm comm;
    int size = world_size(), periodic = 1;
    if (i % 2 == 0) {
        MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &comm);
        return comm;
    }
    const int peers[2] = {(world_rank() + size - 1) % size, (world_rank() + 1) % size};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, peers, MPI_UNWEIGHTED, 2, peers, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm);
    return comm;
}

void use_ring(MPI_Comm comm, int calls) {
    const int size = world_size(), rank = world_rank();
    const int before = (rank + size - 1) % size, behind = (rank + 1) % size;
    std::vector<int> from(64), to(128);
    test::open_comm(comm);
    for (int call = 0; call < calls; ++call) {
        for (int& number : from) number = rank * 1000 + call;
        MPI_Neighbor_allgather(from.data(), 64, MPI_INT, to.data(), 64, MPI_INT, comm);
        for (std::size_t i = 0; i < to.size(); ++i)
            if (to[i] != (i < 64 ? before : behind) * 1000 + call) return CHECK_SAYING(false, "wrong data");
    }
}

void churn(const char* what, int times, int calls, MPI_Comm (*make)(int), void (*use_it)(MPI_Comm, int)) {
    Footprint settled;
    for (int i = 0; i < times; ++i) {
        MPI_Comm comm = make(i);
        use_it(comm, calls);
        MPI_Comm_free(&comm);
        if (i == kSettled) settled = Footprint{};
    }
    const Footprint now;
    CHECK(now.kib < settled.kib + kGrowthKib);
    CHECK(now.descriptors <= settled.descriptors + 4);
    CHECK(now.mappings <= settled.mappings + 40);
    std::printf("rank %d, %s: %ld to %ld KiB, %d to %d descriptors, %d to %d mappings\n", world_rank(), what,
                settled.kib, now.kib, settled.descriptors, now.descriptors, settled.mappings, now.mappings);
}

// Calls that the delete functions of a communicator's attributes make on it, in its last moment, are not
// remembered for the next communicator, which may have its handle and other ranks.
int call_on_dying(MPI_Comm comm, int, void*, void*) {
    use(comm, 1);
    return MPI_SUCCESS;
}

// One that ends another meanwhile, whose delete function calls on the first.
MPI_Comm outer_comm, inner_comm;
int call_on_outer(MPI_Comm, int, void*, void*) {
    for (int number = 7, call = 0; call < 4; ++call) MPI_Bcast(&number, 1, MPI_INT, 0, outer_comm);
    return MPI_SUCCESS;
}
int end_inner(MPI_Comm, int, void*, void*) { return MPI_Comm_free(&inner_comm); }

void end_in_delete_functions() {
    int outer, inner;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end_inner, &outer, nullptr);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, call_on_outer, &inner, nullptr);
    for (int turn = 0; turn < 40; ++turn) {
        MPI_Comm_dup(MPI_COMM_WORLD, &outer_comm);
        MPI_Comm_dup(MPI_COMM_WORLD, &inner_comm);
        MPI_Comm_set_attr(inner_comm, inner, nullptr);
        if (turn % 2 == 0) MPI_Comm_set_attr(outer_comm, outer, nullptr);
        use(outer_comm, 5);
        if (turn % 2 == 1) MPI_Comm_set_attr(outer_comm, outer, nullptr);
        MPI_Comm ending = outer_comm;
        MPI_Comm_free(&ending);
        MPI_Comm_split(MPI_COMM_WORLD, world_rank() % 2, -world_rank(), &outer_comm);
        use(outer_comm, 6);
        MPI_Comm_free(&outer_comm);
    }
    MPI_Comm_free_keyval(&outer);
    MPI_Comm_free_keyval(&inner);
}

void use_in_delete_functions() {
    int before, behind;  // deleted before what libcoco has set, and after it
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, call_on_dying, &before, nullptr);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, call_on_dying, &behind, nullptr);
    for (int calls : {0, 1, 5}) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_attr(comm, behind, nullptr);
        use(comm, calls);
        MPI_Comm_set_attr(comm, before, nullptr);
        MPI_Comm_free(&comm);
        MPI_Comm_split(MPI_COMM_WORLD, world_rank() % 2, -world_rank(), &comm);
        use(comm, 6);
        MPI_Comm_free(&comm);
    }
    MPI_Comm_free_keyval(&before);
    MPI_Comm_free_keyval(&behind);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    use_in_delete_functions();
    end_in_delete_functions();
    churn("made and used", kMade, 10, make_split, use);
    churn("graphs", kGraphs, 10, make_ring, use_ring);
    churn("split and used once", kSplits, 1, make_split, use);
    const int verdict = finish("comms");
    MPI_Finalize();
    return verdict;
}
