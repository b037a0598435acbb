// SPDX-License-Identifier: BSD-3-Clause
//
// coco_choose(): choices that stand in the place of the policy's, changed between any two calls, on one
// communicator and not on the other, repeated calls among them. Each result is looked at. Calls with blocks
// of 40 bytes and of 64 KiB come in turns.
//
//   choose_test CHOICE...    choices for alltoall; each has kCalls calls on the world
#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "support/check.h"

namespace {

using namespace test;

constexpr int kCalls = 10;

using Choose = int(const void* comm, const char* collective, const char* choice);
Choose* choose() {
    static const auto function = reinterpret_cast<Choose*>(dlsym(RTLD_DEFAULT, "coco_choose"));
    return function;
}

using Facts = int(const void* comm, std::int64_t* facts);
// Whether the communicator is set up and has so many nodes; "N on M" is what the run's name says.
bool has_nodes(MPI_Comm comm, std::int64_t nodes) {
    static const auto function = reinterpret_cast<Facts*>(dlsym(RTLD_DEFAULT, "coco_facts"));
    int ranks;
    MPI_Comm_size(comm, &ranks);
    std::int64_t facts[5] = {};
    return function != nullptr && function(&comm, facts) == 0 && facts[0] == nodes &&
           facts[1] == (ranks + nodes - 1) / nodes && facts[2] == nodes && facts[3] == -1;
}

// Whether ranks alike hold it for crowded, and do so if they outnumber the CPUs of all of them.
bool knows_crowding(MPI_Comm comm) {
    static const auto function = reinterpret_cast<Facts*>(dlsym(RTLD_DEFAULT, "coco_facts"));
    std::int64_t facts[5] = {};
    if (function == nullptr || function(&comm, facts) != 0) return false;
    cpu_set_t mine, all;
    CHECK(sched_getaffinity(0, sizeof mine, &mine) == 0);
    MPI_Allreduce(&mine, &all, sizeof mine, MPI_BYTE, MPI_BOR, comm);
    int ranks;
    MPI_Comm_size(comm, &ranks);
    std::int64_t least = facts[4], most = facts[4];
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT64_T, MPI_MIN, comm);
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT64_T, MPI_MAX, comm);
    return least == most && least == (most != 0 ? 1 : 0) && (ranks <= CPU_COUNT(&all) || most == 1);
}

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

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    CHECK(choose() != nullptr);
    MPI_Comm world = MPI_COMM_WORLD, other;
    MPI_Comm_dup(world, &other);
    CHECK(choose()(&other, "alltoall", "mpi") == 1);  // not set up: nobody has called on it
    CHECK(choose()(&world, "alltoall", "no_such_algorithm") == 1);
    CHECK(choose()(&world, "reduce", "mpi") == 1);
    CHECK(choose()(nullptr, "alltoall", "mpi") == 1);
    for (int turn = 0; turn < 3; ++turn) exchange(world, 10, turn);
    const char* topology = std::getenv("COCO_TOPOLOGY");
    CHECK(has_nodes(world,
                    topology != nullptr ? std::strtol(topology + std::strlen("nodes="), nullptr, 10) : 1));
    CHECK(!has_nodes(other, 1));
    CHECK(knows_crowding(world));
    int turn = 0;
    for (int i = 1; i < argc; ++i) {
        CHECK(choose()(&world, "alltoall", argv[i]) == 0);
        for (int call = 0; call < kCalls; ++call) exchange(world, call % 4 == 3 ? 16384 : 10, ++turn);
        exchange(other, 10, ++turn);
    }
    CHECK(choose()(&world, "alltoall", nullptr) == 0);
    for (int call = 0; call < 100; ++call) exchange(world, 10, ++turn);
    const int status = finish("choose");
    MPI_Comm_free(&other);
    MPI_Finalize();
    return status;
}
