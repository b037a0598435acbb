// SPDX-License-Identifier: BSD-3-Clause
//
// Processes that cannot map each other's memory in the usual way, or not at all.
//
//   guarded_test no_room      each has a heap of 3 GiB when it starts, and then address space for 2 GiB more
//   guarded_test undumpable   an ordinary user's whose /proc/PID/fd is closed, as that of an execute-only
//   program's
//   guarded_test unreadable   run where process_vm_readv is refused from the start
#include <mpi.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "support/check.h"

namespace {

void bound_address_space() {
    constexpr std::size_t kBlock = 100'000, kGiB = std::size_t{1} << 30;
    static std::vector<void*> heap(3 * kGiB / kBlock);
    for (void*& block : heap) block = std::malloc(kBlock);
    unsigned long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit more{pages * static_cast<unsigned long>(sysconf(_SC_PAGESIZE)) + 2 * kGiB, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_AS, &more) == 0);
}

bool become_undumpable() {
    if (geteuid() == 0 && (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0))
        return false;
    return prctl(PR_SET_DUMPABLE, 0) == 0;
}

// Lets the MPI library open what it opens of its mates while it may.
void connect_all() {
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int bytes : {1, 1 << 20})
        for (int step = 0; step < ranks; ++step) {
            std::vector<char> send(static_cast<std::size_t>(bytes)), recv(send);
            MPI_Sendrecv(send.data(), bytes, MPI_CHAR, (rank + step) % ranks, 0, recv.data(), bytes, MPI_CHAR,
                         (rank + ranks - step) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
}

void exchange(MPI_Comm comm, int block) {
    int rank = 0, ranks = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    std::vector<int> send(static_cast<std::size_t>(ranks * block), rank), recv(send.size(), -1);
    MPI_Alltoall(send.data(), block, MPI_INT, recv.data(), block, MPI_INT, comm);
    for (int at = 0; at < ranks * block; ++at) CHECK(recv[static_cast<std::size_t>(at)] == at / block);
}

// Each rank's matrix, whose columns go to the ranks in turns: blocks with holes, which together are the whole
// matrix.
void exchange_columns() {
    constexpr int kRows = 1000, kWidth = 300;  // of a block, in ints
    constexpr int kCalls = 4;
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Datatype columns, block;
    MPI_Type_vector(kRows, kWidth, ranks * kWidth, MPI_INT, &columns);
    MPI_Type_create_resized(columns, 0, kWidth * sizeof(int), &block);
    MPI_Type_commit(&block);
    const std::size_t ints = static_cast<std::size_t>(kRows) * static_cast<std::size_t>(ranks * kWidth);
    std::vector<int> send(ints), recv(ints);
    for (int call = 0; call < kCalls; ++call) {
        for (std::size_t at = 0; at < ints; ++at) send[at] = static_cast<int>(at) * 8 + rank + call;
        std::fill(recv.begin(), recv.end(), -1);
        MPI_Alltoall(send.data(), 1, block, recv.data(), 1, block, MPI_COMM_WORLD);
        long wrong = 0;
        for (std::size_t at = 0; at < ints; ++at) {
            const std::size_t row = at / static_cast<std::size_t>(ranks * kWidth),
                              column = at % static_cast<std::size_t>(ranks * kWidth);
            const std::size_t sender = column / kWidth;
            const std::size_t from = row * static_cast<std::size_t>(ranks * kWidth) +
                                     static_cast<std::size_t>(rank) * kWidth + column % kWidth;
            wrong += recv[at] != static_cast<int>(from) * 8 + static_cast<int>(sender) + call;
        }
        CHECK(wrong == 0);
    }
    MPI_Type_free(&columns);
    MPI_Type_free(&block);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string how = argc > 1 ? argv[1] : "";
    if (how == "no_room") bound_address_space();
    MPI_Init(&argc, &argv);
    connect_all();
    if (how == "undumpable" && !become_undumpable()) return 77;
    MPI_Comm twin, half;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    for (int i = 0; i < 6; ++i)
        for (int block : {1, 100, 100'000})
            for (MPI_Comm comm : {MPI_COMM_WORLD, twin, half}) exchange(comm, block);
    if (how == "undumpable") exchange_columns();
    for (int block : {5'000'000, 20'000'000})
        if (how == "unreadable") exchange(MPI_COMM_WORLD, block);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&half);
    const int verdict = test::finish("guarded");
    MPI_Finalize();
    return verdict;
}
