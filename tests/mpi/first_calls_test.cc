// SPDX-License-Identifier: BSD-3-Clause
//
// The first calls on MPI_COMM_WORLD and on a duplicate, by a thread that is killed, with the process, where
// it opens a file, reads a folder or asks for a socket: whatever a call needs to know was found out in
// MPI_Init.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "support/check.h"

namespace {

int g_rank = 0, g_ranks = 0;

#define DIES_OF(call) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

bool forbid_opening() {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
#ifdef SYS_open
        DIES_OF(SYS_open),
        DIES_OF(SYS_readlink),
#endif
        DIES_OF(SYS_openat),
        DIES_OF(SYS_readlinkat),
        DIES_OF(SYS_getdents64),
        DIES_OF(SYS_socket),
        DIES_OF(SYS_memfd_create),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog filter = {.len = std::size(program), .filter = program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

#undef DIES_OF

class Calls {
  public:
    explicit Calls(int most_ints)
        : send_(static_cast<std::size_t>(most_ints * g_ranks), g_rank), recv_(send_.size()) {}

    // Blocks of `ints` each, by every collective.
    void make(MPI_Comm comm, int ints) {
        std::vector<int> counts(static_cast<std::size_t>(g_ranks), ints), at(counts);
        std::exclusive_scan(counts.begin(), counts.end(), at.begin(), 0);
        int *const send = send_.data(), *const recv = recv_.data();
        MPI_Alltoall(send, ints, MPI_INT, recv, ints, MPI_INT, comm);
        check(ints);
        MPI_Alltoallv(send, counts.data(), at.data(), MPI_INT, recv, counts.data(), at.data(), MPI_INT, comm);
        check(ints);
        MPI_Allgather(send, ints, MPI_INT, recv, ints, MPI_INT, comm);
        check(ints);
        MPI_Allgatherv(send, ints, MPI_INT, recv, counts.data(), at.data(), MPI_INT, comm);
        check(ints);
        for (int r = 0; r < g_ranks; ++r)
            MPI_Bcast(r == g_rank ? send : recv + r * ints, ints, MPI_INT, r, comm);
        std::ranges::copy_n(send, ints, recv + g_rank * ints);
        check(ints);
    }

  private:
    void check(int ints) {
        for (int i = 0; i < ints * g_ranks; ++i)
            CHECK(std::exchange(recv_[static_cast<std::size_t>(i)], -1) == i / ints);
    }

    std::vector<int> send_, recv_;
};

void call_first() {
    MPI_Comm dup;
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    Calls calls(65536);
    CHECK(forbid_opening());
    for (MPI_Comm comm : {MPI_COMM_WORLD, dup})
        for (const int ints : {2, 2048, 65536})
            for (int call = 0; call < 4; ++call) calls.make(comm, ints);
    MPI_Comm_free(&dup);
}

}  // namespace

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_ranks);
    std::thread(call_first).join();
    const int failures = test::finish("first calls");
    MPI_Finalize();
    return failures;
}
