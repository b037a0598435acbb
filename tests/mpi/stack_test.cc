// SPDX-License-Identifier: BSD-3-Clause
//
// What calls put on the stack.
//
//   stack_test bound    calls that are known, on threads that measure: at most 8 KiB each, the MPI library's progress included
//   stack_test least    all calls, the first ones too, on threads with the least stack that there is
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "support/check.h"
#include "support/open_comm.h"

namespace {

constexpr std::size_t kAmple = 256 * 1024, kBoundBytes = 8 * 1024;
constexpr unsigned char kPaint = 0x5a;

// Runs a function on a thread with a stack of that size. Returns: how much of it was used.
std::size_t run_on_stack(std::size_t bytes, std::function<void()> function) {
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mapped != MAP_FAILED);
    auto* stack = static_cast<unsigned char*>(mapped);
    std::memset(stack, kPaint, bytes);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    CHECK(pthread_attr_setstack(&attributes, stack, bytes) == 0);
    pthread_t thread;
    const auto run = [](void* argument) -> void* {
        (*static_cast<std::function<void()>*>(argument))();
        return nullptr;
    };
    CHECK(pthread_create(&thread, &attributes, run, &function) == 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
    std::size_t unused = 0;
    while (unused < bytes && stack[unused] == kPaint) ++unused;
    munmap(mapped, bytes);
    return bytes - unused;
}

struct Form {
    std::string name;
    std::function<void()> call;
};

// The buffers of all forms, for blocks of up to kMostInts ints or columns.
class Forms {
  public:
    static constexpr int kMostInts = 256 * 1024, kHole = 2;

    explicit Forms(MPI_Comm comm) : comm_(comm) {
        MPI_Comm_rank(comm, &rank_);
        MPI_Comm_size(comm, &size_);
        const std::size_t ints = static_cast<std::size_t>(size_) * kMostInts * kHole;
        send_.resize(ints, rank_);
        recv_.resize(ints);
        MPI_Type_vector(kMostInts / 16, 1, kHole, MPI_INT, &holes_);
        MPI_Type_commit(&holes_);
        std::vector<int> neighbors{(rank_ + 1) % size_, (rank_ + size_ - 1) % size_};
        MPI_Dist_graph_create_adjacent(comm, 2, neighbors.data(), MPI_UNWEIGHTED, 2, neighbors.data(),
                                       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph_);
        test::open_comm(graph_);
    }
    ~Forms() {
        MPI_Type_free(&holes_);
        MPI_Comm_free(&graph_);
    }
    Forms(const Forms&) = delete;
    Forms& operator=(const Forms&) = delete;

    std::vector<Form> all(int ints) {
        for (auto* list : {&counts_, &displacements_}) list->assign(static_cast<std::size_t>(size_), ints);
        bytes_.assign(static_cast<std::size_t>(size_), 0);
        types_.assign(static_cast<std::size_t>(size_), MPI_INT);
        for (int r = 0; r < size_; ++r) {
            displacements_[static_cast<std::size_t>(r)] = r * ints;
            bytes_[static_cast<std::size_t>(r)] = r * ints * static_cast<int>(sizeof(int));
        }
        aints_.assign(bytes_.begin(), bytes_.end());
        const std::string size = " of " + std::to_string(ints) + " ints";
        int *s = send_.data(), *r = recv_.data(), *c = counts_.data(), *d = displacements_.data();
        return {
            {"alltoall" + size, [=, this] { MPI_Alltoall(s, ints, MPI_INT, r, ints, MPI_INT, comm_); }},
            {"alltoallv" + size, [=, this] { MPI_Alltoallv(s, c, d, MPI_INT, r, c, d, MPI_INT, comm_); }},
            {"alltoallw" + size,
             [=, this] {
                 MPI_Alltoallw(s, c, bytes_.data(), types_.data(), r, c, bytes_.data(), types_.data(), comm_);
             }},
            {"allgather" + size, [=, this] { MPI_Allgather(s, ints, MPI_INT, r, ints, MPI_INT, comm_); }},
            {"allgatherv" + size, [=, this] { MPI_Allgatherv(s, ints, MPI_INT, r, c, d, MPI_INT, comm_); }},
            {"bcast" + size, [=, this] { MPI_Bcast(r, ints, MPI_INT, 0, comm_); }},
            {"neighbor_alltoall" + size,
             [=, this] { MPI_Neighbor_alltoall(s, ints, MPI_INT, r, ints, MPI_INT, graph_); }},
            {"neighbor_alltoallv" + size,
             [=, this] { MPI_Neighbor_alltoallv(s, c, d, MPI_INT, r, c, d, MPI_INT, graph_); }},
            {"neighbor_allgather" + size,
             [=, this] { MPI_Neighbor_allgather(s, ints, MPI_INT, r, ints, MPI_INT, graph_); }},
        };
    }
    // Blocks with holes.
    std::vector<Form> with_holes() {
        int *s = send_.data(), *r = recv_.data();
        return {
            {"alltoall with holes", [=, this] { MPI_Alltoall(s, 1, holes_, r, 1, holes_, comm_); }},
            {"allgather with holes", [=, this] { MPI_Allgather(s, 1, holes_, r, 1, holes_, comm_); }},
            {"bcast with holes", [=, this] { MPI_Bcast(r, 1, holes_, 0, comm_); }},
        };
    }

  private:
    MPI_Comm comm_, graph_ = MPI_COMM_NULL;
    int rank_ = 0, size_ = 0;
    MPI_Datatype holes_ = MPI_DATATYPE_NULL;
    std::vector<int> send_, recv_, counts_, displacements_, bytes_;
    std::vector<MPI_Aint> aints_;
    std::vector<MPI_Datatype> types_;
};

// In the order in which all ranks make them.
template <class Use>
void for_all_forms(MPI_Comm comm, Use use) {
    Forms forms(comm);
    for (const int ints : {2, 500, 8 * 1024, Forms::kMostInts / 2})
        for (const Form& form : forms.all(ints)) use(form);
    for (const Form& form : forms.with_holes()) use(form);
}

void repeat(int times, const Form& form) {
    for (int i = 0; i < times; ++i) form.call();
}

void check_bound() {
    const std::size_t none = run_on_stack(kAmple, [] {});
    std::size_t most = 0;
    for_all_forms(MPI_COMM_WORLD, [&](const Form& form) {
        // Calls that are left to the MPI library come first; and what the thread keeps is made in its first
        // call.
        repeat(100, form);
        const std::size_t used = run_on_stack(kAmple, [&] { repeat(20, form); }) - none;
        if (used > kBoundBytes) std::fprintf(stderr, "%s: %zu bytes on the stack\n", form.name.c_str(), used);
        CHECK(used <= kBoundBytes);
        most = std::max(most, used);
    });
    std::printf("at most %zu bytes of stack\n", most);
}

void run_with_least() {
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    std::size_t most = 0;
    for (MPI_Comm comm : {MPI_COMM_WORLD, twin})
        for_all_forms(comm, [&](const Form& form) {
            most = std::max(most, run_on_stack(PTHREAD_STACK_MIN, [&] { repeat(30, form); }));
        });
    std::printf("at most %zu bytes of %d\n", most, static_cast<int>(PTHREAD_STACK_MIN));
    MPI_Comm_free(&twin);
}

}  // namespace

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (argc > 1 && std::strcmp(argv[1], "bound") == 0) check_bound();
    if (argc > 1 && std::strcmp(argv[1], "least") == 0) run_with_least();
    const int failures = test::finish("stack");
    MPI_Finalize();
    return failures;
}
