// SPDX-License-Identifier: BSD-3-Clause
//
// Calls that the MPI library refuses stay refused, and calls that it takes are taken: wrong calls by the
// program and by the library's own function, which must return the same error class. Then calls that are
// wrong on one rank alone, where MPICH leaves the others waiting: with libcoco that rank hears the error, and
// the others are served.
#include <mpi.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "call.h"
#include "support/open_comm.h"
#include "support/refused.h"

namespace {

using namespace test;

#ifdef OPEN_MPI
constexpr bool kRefusesLongReceivers = false;
#else
constexpr bool kRefusesLongReceivers = true;
#endif

int handled = 0;
void handler(MPI_Comm*, int*, ...) { ++handled; }

// A communicator of its own for each wrong call: the library may leave messages behind.
MPI_Comm fresh_comm() {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    warm_up(comm);
    return comm;
}

struct Case {
    const char* what;
    std::function<int(const Functions&, MPI_Comm)> call;
};

void compare(const Case& c) {
    static const Functions called = called_functions(), own = library_functions();
    MPI_Comm one = fresh_comm(), other = fresh_comm();
    const int wanted = class_of(c.call(own, one)), got = class_of(c.call(called, other));
    const std::string text = std::string(c.what) + ": class " + std::to_string(got) +
                             ", the MPI library says " + std::to_string(wanted);
    CHECK_SAYING(got == wanted, text.c_str());
    MPI_Comm_free(&one);
    MPI_Comm_free(&other);
}

constexpr int kMostRanks = 16, kLarge = 40'000, kLongest = 200'000;  // blocks, and bcasts
int* memory;  // on the heap, so that nothing is handed back for being private
int from[64];
int ones[kMostRanks], more_ones[kMostRanks], twos[kMostRanks], nothing[kMostRanks];
int near[kMostRanks], near_bytes[kMostRanks], far[kMostRanks], far_bytes[kMostRanks];
MPI_Aint no_places[kMostRanks];
MPI_Datatype ints[kMostRanks], more_ints[kMostRanks], nulls[kMostRanks];

#if MPI_VERSION >= 4
MPI_Count wide_ones[kMostRanks];
MPI_Aint wide_near[kMostRanks], wide_near_bytes[kMostRanks];
#endif

void fill_arrays() {
    for (int i = 0; i < kMostRanks; ++i) {
        ones[i] = more_ones[i] = 1, twos[i] = 2, nothing[i] = 0;
        near[i] = i, near_bytes[i] = 4 * i, far[i] = 1000 + i, far_bytes[i] = 4000 + 4 * i;
#if MPI_VERSION >= 4
        wide_ones[i] = 1, wide_near[i] = i, wide_near_bytes[i] = 4 * i;
#endif
        ints[i] = more_ints[i] = MPI_INT, nulls[i] = MPI_DATATYPE_NULL;
    }
}

struct Types {
    MPI_Datatype gap, empty, absolute, pair;
};

Types make_types() {
    Types t;
    const int one = 1;
    MPI_Aint at;
    MPI_Get_address(memory, &at);
    MPI_Type_create_resized(MPI_INT, 0, 12, &t.gap);
    MPI_Type_contiguous(0, MPI_INT, &t.empty);
    MPI_Type_contiguous(2, MPI_INT, &t.pair);
    MPI_Type_create_hindexed(1, &one, &at, MPI_INT, &t.absolute);
    for (MPI_Datatype* type : {&t.gap, &t.empty, &t.pair, &t.absolute}) MPI_Type_commit(type);
    return t;
}

void free_types(Types& t) {
    for (MPI_Datatype* type : {&t.gap, &t.empty, &t.pair, &t.absolute}) MPI_Type_free(type);
}

// Calls that send from where they receive, and some that only look so.
std::vector<Case> aliased_alltoalls(const Types& t) {
    int* const m = memory;
    const MPI_Datatype i = MPI_INT;
    return {
        {"alltoall, same buffer", [=](auto& f, auto w) { return f.Alltoall(m, 1, i, m, 1, i, w); }},
        {"alltoall, same large buffer",
         [=](auto& f, auto w) { return f.Alltoall(m, kLarge, i, m, kLarge, i, w); }},
        {"alltoall, same large buffer with holes",
         [=](auto& f, auto w) { return f.Alltoall(m, kLarge, t.gap, m, kLarge, t.gap, w); }},
        {"alltoall, same buffer, other type",
         [=](auto& f, auto w) { return f.Alltoall(m, 2, i, m, 1, t.pair, w); }},
        {"alltoall, same buffer, nothing", [=](auto& f, auto w) { return f.Alltoall(m, 0, i, m, 0, i, w); }},
        {"alltoall, same buffer, empty type",
         [=](auto& f, auto w) { return f.Alltoall(m, 1, t.empty, m, 1, t.empty, w); }},
        {"alltoall, same absolute type",
         [=](auto& f, auto w) {
             return f.Alltoall(MPI_BOTTOM, 1, t.absolute, MPI_BOTTOM, 1, t.absolute, w);
         }},
        {"alltoallv, same buffer",
         [=](auto& f, auto w) { return f.Alltoallv(m, ones, near, i, m, ones, near, i, w); }},
        {"alltoallv, same buffer, other places",
         [=](auto& f, auto w) { return f.Alltoallv(m, ones, near, i, m, ones, far, i, w); }},
        {"alltoallv, same buffer, other counts",
         [=](auto& f, auto w) { return f.Alltoallv(m, ones, near, i, m, more_ones, far, i, w); }},
        {"alltoallv, same buffer, nothing",
         [=](auto& f, auto w) { return f.Alltoallv(m, nothing, near, i, m, nothing, near, i, w); }},
        {"alltoallw, same buffer",
         [=](auto& f, auto w) {
             return f.Alltoallw(m, ones, near_bytes, ints, m, ones, near_bytes, ints, w);
         }},
        {"alltoallw, same buffer, other counts",
         [=](auto& f, auto w) {
             return f.Alltoallw(m, ones, near_bytes, ints, m, more_ones, far_bytes, ints, w);
         }},
        {"alltoallw, same buffer, other types",
         [=](auto& f, auto w) {
             return f.Alltoallw(m, ones, near_bytes, ints, m, ones, far_bytes, more_ints, w);
         }},
        {"alltoallw, same buffer, nothing", [=](auto& f, auto w) {
             return f.Alltoallw(m, nothing, near_bytes, ints, m, nothing, near_bytes, ints, w);
         }}};
}

std::vector<Case> aliased_allgathers(const Types& t) {
    int* const m = memory;
    const int r = world_rank();
    const MPI_Datatype i = MPI_INT;
    return {
        {"allgather, own block", [=](auto& f, auto w) { return f.Allgather(m + r, 1, i, m, 1, i, w); }},
        {"allgather, own large block",
         [=](auto& f, auto w) { return f.Allgather(m + r * kLarge, kLarge, i, m, kLarge, i, w); }},
        {"allgather, own block, nothing",
         [=](auto& f, auto w) { return f.Allgather(m + r, 0, i, m, 0, i, w); }},
        {"allgather, own block, empty type",
         [=](auto& f, auto w) { return f.Allgather(m, 1, t.empty, m, 1, t.empty, w); }},
        {"allgather, own block but for gaps",
         [=](auto& f, auto w) { return f.Allgather(m + r, 1, t.gap, m, 1, t.gap, w); }},
        {"allgatherv, own block",
         [=](auto& f, auto w) { return f.Allgatherv(m + r, 1, i, m, ones, near, i, w); }},
        {"allgatherv, own block further on",
         [=](auto& f, auto w) { return f.Allgatherv(m + 1000 + r, 1, i, m, ones, far, i, w); }},
        {"allgatherv, own block, other type",
         [=](auto& f, auto w) { return f.Allgatherv(m + r, 1, MPI_UNSIGNED, m, ones, near, i, w); }},
        {"allgatherv, own block, nothing",
         [=](auto& f, auto w) { return f.Allgatherv(m + r, 0, i, m, nothing, near, i, w); }},
#ifndef OPEN_MPI  // which truncates, and hangs where ranks are more than two
        {"allgatherv, own block, more sent",
         [=](auto& f, auto w) { return f.Allgatherv(m + r, 2, i, m, ones, near, i, w); }},
#endif
    };
}

#if MPI_VERSION >= 4
// By the functions that take large counts.
std::vector<Case> aliased_large_counts() {
    int* const m = memory;
    const int r = world_rank();
    const MPI_Datatype i = MPI_INT;
    return {
        {"alltoall_c, same buffer", [=](auto& f, auto w) { return f.Alltoall_c(m, 1, i, m, 1, i, w); }},
        {"alltoallv_c, same buffer",
         [=](auto& f, auto w) {
             return f.Alltoallv_c(m, wide_ones, wide_near, i, m, wide_ones, wide_near, i, w);
         }},
        {"alltoallw_c, same buffer",
         [=](auto& f, auto w) {
             return f.Alltoallw_c(m, wide_ones, wide_near_bytes, ints, m, wide_ones, wide_near_bytes, ints,
                                  w);
         }},
        {"allgather_c, own block", [=](auto& f, auto w) { return f.Allgather_c(m + r, 1, i, m, 1, i, w); }},
        {"allgatherv_c, own block",
         [=](auto& f, auto w) { return f.Allgatherv_c(m + r, 1, i, m, wide_ones, wide_near, i, w); }}};
}
#else
std::vector<Case> aliased_large_counts() { return {}; }
#endif

// On a ring that has been called on often enough to be ours.
template <class Call>
int on_ring(MPI_Comm comm, Call call) {
    const int size = world_size(), round = 1;
    MPI_Comm ring;
    MPI_Cart_create(comm, 1, &size, &round, 0, &ring);
    MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
    test::open_comm(ring);
    const int code = call(ring);
    MPI_Comm_free(&ring);
    return code;
}

// Blocks of nothing among neighbours, of no type.
std::vector<Case> empty_calls_of_neighbors() {
    int* const m = memory;
    const MPI_Datatype i = MPI_INT, null = MPI_DATATYPE_NULL;
    return {{"neighbor_alltoall, nothing of no type",
             [=](auto& f, auto w) {
                 return on_ring(w, [&](auto r) { return f.Neighbor_alltoall(from, 0, i, m, 0, null, r); });
             }},
            {"neighbor_alltoallw, nothing of no type",
             [=](auto& f, auto w) {
                 return on_ring(w, [&](auto r) {
                     return f.Neighbor_alltoallw(from, nothing, no_places, nulls, m, nothing, no_places, ints,
                                                 r);
                 });
             }},
            {"neighbor_allgatherv, nothing of no type", [=](auto& f, auto w) {
                 return on_ring(
                     w, [&](auto r) { return f.Neighbor_allgatherv(from, 0, null, m, nothing, near, i, r); });
             }}};
}

// No data, yet not right, or right and strange.
std::vector<Case> empty_calls() {
    int* const m = memory;
    const MPI_Datatype i = MPI_INT, null = MPI_DATATYPE_NULL;
    void* const place = const_cast<void*>(MPI_IN_PLACE);
    return {
        {"alltoall, nothing of no type",
         [=](auto& f, auto w) { return f.Alltoall(from, 0, null, m, 0, i, w); }},
        {"alltoallv, nothing of no type",
         [=](auto& f, auto w) { return f.Alltoallv(from, nothing, near, i, m, nothing, near, null, w); }},
        {"alltoallw, nothing of no type",
         [=](auto& f, auto w) { return f.Alltoallw(from, nothing, near, nulls, m, nothing, near, ints, w); }},
        {"allgather, nothing of no type",
         [=](auto& f, auto w) { return f.Allgather(from, 0, null, m, 0, i, w); }},
        {"allgatherv, nothing of no type",
         [=](auto& f, auto w) { return f.Allgatherv(from, 0, null, m, nothing, near, i, w); }},
        {"alltoall, nothing, null",
         [=](auto& f, auto w) { return f.Alltoall(nullptr, 0, i, nullptr, 0, i, w); }},
        {"bcast, nothing, null", [=](auto& f, auto w) { return f.Bcast(nullptr, 0, i, 0, w); }},
        {"bcast, nothing from no rank", [=](auto& f, auto w) { return f.Bcast(m, 0, i, world_size(), w); }},
        {"alltoall, nothing to in place",
         [=](auto& f, auto w) { return f.Alltoall(m, 0, i, place, 0, i, w); }},
        {"alltoall, in place, nonsense of the send side",
         [=](auto& f, auto w) { return f.Alltoall(place, -5, null, m, 1, i, w); }},
        {"alltoallw, in place, nonsense of the send side",
         [=](auto& f, auto w) {
             return f.Alltoallw(place, nullptr, nullptr, nullptr, m, ones, near_bytes, ints, w);
         }},
        {"allgatherv, in place, nonsense of the send side",
         [=](auto& f, auto w) { return f.Allgatherv(place, -5, null, m, ones, near, i, w); }}};
}

// Receivers of a bcast that name more than the root sends: all of them, or the last.
void compare_bcasts() {
    const int rank = world_rank(), last = world_size() - 1;
    for (int sent : {1, 3, 16, 500, 512, 600, 3000, 20'000, kLongest})
        for (bool all : {true, false}) {
            const bool longer = rank != 0 && (all || rank == last);
            compare({"bcast, longer receivers", [=](auto& f, auto w) {
                         return f.Bcast(memory, longer ? 2 * sent : sent, MPI_INT, 0, w);
                     }});
        }
}

// One call of one rank that sends from where it receives, among others that do not.
struct Alone {
    const char* what;
    // Returns: what the call returned. to: blocks of `count` ints; the own block is sent from `own`.
    std::function<int(const Functions&, MPI_Comm, int count, int* own, int* to)> call;
    bool personal;  // `own` is then a block for each rank
};

std::vector<Alone> alone_calls() {
    static int counts[kMostRanks], places[kMostRanks], bytes[kMostRanks];
    auto of = [](int count) {
        for (int i = 0; i < kMostRanks; ++i)
            counts[i] = count, places[i] = i * count, bytes[i] = i * count * static_cast<int>(sizeof(int));
    };
    const MPI_Datatype i = MPI_INT;
    return {
        {"alltoall alone",
         [=](auto& f, auto w, int n, int* own, int* to) { return f.Alltoall(own, n, i, to, n, i, w); }, true},
        {"alltoallv alone",
         [=](auto& f, auto w, int n, int* own, int* to) {
             return of(n), f.Alltoallv(own, counts, places, i, to, counts, places, i, w);
         },
         true},
        {"alltoallw alone",
         [=](auto& f, auto w, int n, int* own, int* to) {
             return of(n), f.Alltoallw(own, counts, bytes, ints, to, counts, bytes, ints, w);
         },
         true},
        {"allgather alone",
         [=](auto& f, auto w, int n, int* own, int* to) { return f.Allgather(own, n, i, to, n, i, w); },
         false},
        {"allgatherv alone",
         [=](auto& f, auto w, int n, int* own, int* to) {
             return of(n), f.Allgatherv(own, n, i, to, counts, places, i, w);
         },
         false}};
}

// The value that rank `from_rank` sends to `to_rank`, which does not matter in gathers.
int value_of(int from_rank, int to_rank, int i) { return from_rank * 1'000'000 + to_rank * 100'000 + i; }

void check_received(const Alone& call, const int* to, int count) {
    const int size = world_size(), me = call.personal ? world_rank() : 0;
    bool right = true;
    for (int r = 0; r < size; ++r)
        for (int i = 0; i < count; ++i) right = right && to[r * count + i] == value_of(r, me, i);
    CHECK_SAYING(right, call.what);
}

void run_alone(const Alone& call, MPI_Comm comm, int count, bool wrong) {
    static const Functions called = called_functions();
    const int rank = world_rank(), size = world_size();
    const bool errs = wrong && rank == size - 1;
    int* const to = memory;
    int* const own = !errs ? memory + size * count : call.personal ? to : to + rank * count;
    for (int b = 0; b < (call.personal ? size : 1); ++b)
        for (int i = 0; i < count; ++i) own[b * count + i] = value_of(rank, b, i);
    handled = 0;
    const int got = class_of(call.call(called, comm, count, own, to));
    const bool refused = errs && kRefusesAliases;
    const std::string text = std::string(call.what) + ": class " + std::to_string(got) + ", handled " +
                             std::to_string(handled) + " times";
    CHECK_SAYING(got == (refused ? MPI_ERR_BUFFER : MPI_SUCCESS) && handled == (refused ? 1 : 0),
                 text.c_str());
    // Where the library moves what it finds, nobody can say what that is.
    if (kRefusesAliases || !wrong) check_received(call, to, count);
    MPI_Barrier(comm);  // `own` is written again
}

void alone(MPI_Comm comm) {
    MPI_Errhandler counting;
    MPI_Comm_create_errhandler(handler, &counting);
    MPI_Comm_set_errhandler(comm, counting);
    for (const Alone& call : alone_calls())
        for (int count : {1, 100, 3000, kLarge})
            for (bool wrong : {false, true, false, false, true, true, false})  // also after its like
                run_alone(call, comm, count, wrong);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&counting);
}

// The shorter message is received all the same, and the error heard where the library has one.
void short_bcasts(MPI_Comm comm) {
    const int rank = world_rank(), last = world_size() - 1;
    for (int count : {1, 100, 600, 5000, kLongest})
        for (bool wrong : {false, true, false, false, true, true, false}) {
            const bool errs = wrong && rank == last && rank != 0;
            for (int i = 0; i < 2 * count; ++i) memory[i] = rank == 0 ? i : -1;
            const int got = class_of(MPI_Bcast(memory, errs ? 2 * count : count, MPI_INT, 0, comm));
            CHECK(got == (errs && kRefusesLongReceivers ? MPI_ERR_OTHER : MPI_SUCCESS));
            CHECK(memory[count - 1] == count - 1 && (rank == 0 || memory[count] == -1));
        }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    std::vector<int> heap(static_cast<std::size_t>(std::max(4 * world_size() * kLarge, 2 * kLongest)));
    memory = heap.data();
    fill_arrays();
    const bool over_nodes = argc > 1;
    Types types = make_types();
    for (const Case& c : aliased_alltoalls(types)) compare(c);
    for (const Case& c : aliased_allgathers(types)) compare(c);
    for (const Case& c : aliased_large_counts()) compare(c);
    for (const Case& c : empty_calls()) compare(c);
    for (const Case& c : empty_calls_of_neighbors()) compare(c);
    free_types(types);
    MPI_Comm comm = fresh_comm();
    alone(comm);
    if (!over_nodes) {  // leaders of nodes end the job then
        // Open MPI goes other ways for other lengths, and may hang by itself.
        if (kRefusesLongReceivers) compare_bcasts();
        short_bcasts(comm);
    }
    warm_up(comm);
    MPI_Comm_free(&comm);
    const int verdict = finish("refusals");
    MPI_Finalize();
    return verdict;
}
