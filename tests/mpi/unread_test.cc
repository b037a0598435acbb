// SPDX-License-Identifier: BSD-3-Clause
//
// Large exchanges of private buffers go on when the kernel ceases to let ranks read each other's memory,
// after it did so in the first calls: unread_test HOW [neighbors], with HOW
//   recv_closed, send_closed   pages of buffers are closed, and opened by a signal handler of the program's when they are
//                              touched, as collectors and checkpointers have it
//   first_ended                the ranks' first threads have ended
//   filter                     a filter of system calls refuses process_vm_readv
//   setuid, seteuid, setgid    the ranks have given up rights (by root alone)
// neighbors: exchanges among neighbours, too. They then go by messages, which the MPI library must not read
// as we do.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mpi.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "support/check.h"
#include "support/open_comm.h"

namespace {

constexpr std::size_t kInts = 100'000, kPage = 4096;
constexpr int kCalls = 4;
int g_rank = 0, g_ranks = 0;
bool g_closes_send = false, g_closes_recv = false;

// Memory that is mapped anew, so that peers cannot know it.
class Buffer {
  public:
    Buffer() : bytes_(static_cast<std::size_t>(g_ranks) * kInts * sizeof(int)) {
        void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(mapped != MAP_FAILED);
        ints = static_cast<int*>(mapped);
    }
    ~Buffer() { munmap(ints, bytes_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    // Closes every third page.
    void close() {
        for (std::size_t at = 0; at < bytes_; at += 3 * kPage)
            CHECK(mprotect(reinterpret_cast<char*>(ints) + at, kPage, PROT_NONE) == 0);
    }

    int* ints;

  private:
    std::size_t bytes_;
};

void open_page(int, siginfo_t* fault, void*) {
    const auto page = reinterpret_cast<std::uintptr_t>(fault->si_addr) / kPage * kPage;
    if (mprotect(reinterpret_cast<void*>(page), kPage, PROT_READ | PROT_WRITE) != 0) std::abort();
}

void watch_pages() {
    struct sigaction watching {};
    watching.sa_sigaction = open_page;
    watching.sa_flags = SA_SIGINFO | SA_NODEFER;
    CHECK(sigaction(SIGSEGV, &watching, nullptr) == 0);
}

int value(int from, int to, int call, std::size_t i) {
    return ((from * 16 + to) * 64 + call) * 1024 + static_cast<int>(i % 1024);
}

// Makes a call and compares what came. personal: each rank gets another block.
template <class Call>
void check(bool personal, int number, Call call) {
    Buffer send, recv;
    for (int to = 0; to < (personal ? g_ranks : 1); ++to)
        for (std::size_t i = 0; i < kInts; ++i)
            send.ints[static_cast<std::size_t>(to) * kInts + i] = value(g_rank, to, number, i);
    if (g_closes_send) send.close();
    if (g_closes_recv) recv.close();
    call(send.ints, recv.ints);
    for (int from = 0; from < g_ranks; ++from)
        for (std::size_t i = 0; i < kInts; ++i)
            if (recv.ints[static_cast<std::size_t>(from) * kInts + i] !=
                value(from, personal ? g_rank : 0, number, i)) {
                CHECK(!"the data is right");
                return;
            }
}

void exchange(int number) {
    constexpr int kCount = static_cast<int>(kInts);
    std::vector<int> counts(static_cast<std::size_t>(g_ranks), kCount), at(counts.size());
    for (std::size_t r = 0; r < at.size(); ++r) at[r] = static_cast<int>(r) * kCount;
    check(true, number, [&](const int* from, int* to) {
        MPI_Alltoall(from, kCount, MPI_INT, to, kCount, MPI_INT, MPI_COMM_WORLD);
    });
    check(true, number, [&](const int* from, int* to) {
        MPI_Alltoallv(from, counts.data(), at.data(), MPI_INT, to, counts.data(), at.data(), MPI_INT,
                      MPI_COMM_WORLD);
    });
    check(false, number, [&](const int* from, int* to) {
        MPI_Allgather(from, kCount, MPI_INT, to, kCount, MPI_INT, MPI_COMM_WORLD);
    });
    check(false, number, [&](const int* from, int* to) {
        MPI_Allgatherv(from, kCount, MPI_INT, to, counts.data(), at.data(), MPI_INT, MPI_COMM_WORLD);
    });
}

// All ranks are neighbours of all, but the last one's blocks go to the first alone.
MPI_Comm neighborhood() {
    std::vector<int> from, to;
    for (int r = 0; r < g_ranks; ++r) {
        const bool is_last = r == g_ranks - 1;
        if (r != g_rank && (!is_last || g_rank == 0)) from.push_back(r);
        if (r != g_rank && (g_rank != g_ranks - 1 || r == 0)) to.push_back(r);
    }
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(from.size()), from.data(), MPI_UNWEIGHTED,
                                   static_cast<int>(to.size()), to.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                   &comm);
    test::open_comm(comm);
    return comm;
}

template <class Call>
void check_neighbors(MPI_Comm comm, bool personal, int number, Call call) {
    int sources = 0, targets = 0, weighted = 0;
    MPI_Dist_graph_neighbors_count(comm, &sources, &targets, &weighted);
    std::vector<int> from(static_cast<std::size_t>(sources)), to(static_cast<std::size_t>(targets));
    MPI_Dist_graph_neighbors(comm, sources, from.data(), MPI_UNWEIGHTED, targets, to.data(), MPI_UNWEIGHTED);
    Buffer send, recv;
    for (std::size_t b = 0; b < (personal ? to.size() : 1); ++b)
        for (std::size_t i = 0; i < kInts; ++i)
            send.ints[b * kInts + i] = value(g_rank, personal ? to[b] : 0, number, i);
    call(send.ints, recv.ints);
    for (std::size_t b = 0; b < from.size(); ++b)
        for (std::size_t i = 0; i < kInts; ++i)
            if (recv.ints[b * kInts + i] != value(from[b], personal ? g_rank : 0, number, i)) {
                CHECK(!"the neighbours' data is right");
                return;
            }
}

void exchange_with_neighbors(MPI_Comm comm, int number) {
    constexpr int kCount = static_cast<int>(kInts);
    const std::vector<int> counts(static_cast<std::size_t>(g_ranks), kCount);
    std::vector<int> at(counts.size());
    for (std::size_t r = 0; r < at.size(); ++r) at[r] = static_cast<int>(r) * kCount;
    check_neighbors(comm, true, number, [&](const int* from, int* to) {
        MPI_Neighbor_alltoall(from, kCount, MPI_INT, to, kCount, MPI_INT, comm);
    });
    check_neighbors(comm, true, number, [&](const int* from, int* to) {
        MPI_Neighbor_alltoallv(from, counts.data(), at.data(), MPI_INT, to, counts.data(), at.data(), MPI_INT,
                               comm);
    });
    check_neighbors(comm, false, number, [&](const int* from, int* to) {
        MPI_Neighbor_allgather(from, kCount, MPI_INT, to, kCount, MPI_INT, comm);
    });
    // Each second int is received.
    MPI_Datatype seconds = MPI_DATATYPE_NULL, block = MPI_DATATYPE_NULL;
    MPI_Type_vector(kCount, 1, 2, MPI_INT, &seconds);
    MPI_Type_create_resized(seconds, 0, 2 * kCount * static_cast<MPI_Aint>(sizeof(int)), &block);
    MPI_Type_commit(&block);
    check_neighbors(comm, false, number, [&](const int* from, int* to) {
        std::vector<int> got(static_cast<std::size_t>(g_ranks) * 2 * kInts, -1);
        MPI_Neighbor_allgather(from, kCount, MPI_INT, got.data(), 1, block, comm);
        for (std::size_t i = 0; i < got.size() / 2; ++i) to[i] = got[2 * i];
    });
    MPI_Type_free(&seconds);
    MPI_Type_free(&block);
}

bool refuse_reads() {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog filter = {.len = std::size(program), .filter = program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// Returns: whether this process could become so. Of the ranks some do and others do not.
bool become(const std::string& how) {
    constexpr unsigned kNobody = 65534;
    const auto nobody = kNobody + static_cast<unsigned>(g_rank);
    if (how == "recv_closed" || how == "send_closed") {
        watch_pages();
        g_closes_send = how == "send_closed";
        g_closes_recv = how == "recv_closed";
        return true;
    }
    if (how == "filter") return g_rank % 2 == 1 || refuse_reads();
    if (geteuid() != 0) return false;
    if (how == "setuid") return setuid(nobody) == 0;
    if (how == "seteuid") return seteuid(nobody) == 0;
    return setgid(nobody) == 0 && setuid(kNobody) == 0;
}

int run(const std::string& how, bool with_neighbors) {
    int call = 0;
    MPI_Comm neighbors = with_neighbors ? neighborhood() : MPI_COMM_NULL;
    auto exchange_all = [&] {
        exchange(call);
        if (with_neighbors) exchange_with_neighbors(neighbors, call);
    };
    for (; call < kCalls; ++call) exchange_all();
    const int could = how == "first_ended" || become(how);
    int all_could = 0;
    MPI_Allreduce(&could, &all_could, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    for (; all_could && call < 2 * kCalls; ++call) exchange_all();
    if (with_neighbors) MPI_Comm_free(&neighbors);
    const int failures = test::finish("unread");
    MPI_Finalize();
    return all_could ? failures : 77;
}

pthread_t g_first;
void* run_behind_first(void*) {
    pthread_join(g_first, nullptr);
    std::exit(run("first_ended", false));
}

}  // namespace

int main(int argc, char** argv) {
    const std::string how = argc > 1 ? argv[1] : "";
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_ranks);
    test::world_rank();
    if (how != "first_ended") return run(how, argc > 2 && std::string(argv[2]) == "neighbors");
    for (int call = 0; call < kCalls; ++call) exchange(call);
    g_first = pthread_self();
    pthread_t second;
    CHECK(pthread_create(&second, nullptr, run_behind_first, nullptr) == 0);
    pthread_exit(nullptr);
}
