// SPDX-License-Identifier: BSD-3-Clause
//
// Arguments that MPI refuses: with MPI_ERRORS_RETURN the call gives the same error class as the MPI library's
// own function, a user's error handler is called, and the communicator can still be used.
#include <mpi.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "call.h"
#include "support/refused.h"

namespace {

using namespace test;

int handled = 0;
void handler(MPI_Comm*, int*, ...) { ++handled; }

struct Case {
    const char* what;
    std::function<int(const Functions&)> call;
};

constexpr int kInts = 64;
int from[kInts * 16], to[kInts * 16];
int counts[16], places[16];
int bad_counts[16];
MPI_Datatype types[16];

std::vector<Case> cases() {
    const MPI_Comm w = MPI_COMM_WORLD;
    const int n = world_size();
    MPI_Datatype fresh;  // never committed
    MPI_Type_contiguous(3, MPI_INT, &fresh);
    return {
        {"alltoall, negative count",
         [=](auto& f) { return f.Alltoall(from, -1, MPI_INT, to, 1, MPI_INT, w); }},
        {"alltoall, null type",
         [=](auto& f) { return f.Alltoall(from, 1, MPI_INT, to, 1, MPI_DATATYPE_NULL, w); }},
        {"alltoall, uncommitted type", [=](auto& f) { return f.Alltoall(from, 1, fresh, to, 1, fresh, w); }},
        {"alltoall, null communicator",
         [=](auto& f) { return f.Alltoall(from, 1, MPI_INT, to, 1, MPI_INT, MPI_COMM_NULL); }},
        {"alltoall, in place as receive buffer",
         [=](auto& f) { return f.Alltoall(from, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, w); }},
        {"alltoallv, negative count",
         [=](auto& f) {
             return f.Alltoallv(from, counts, places, MPI_INT, to, bad_counts, places, MPI_INT, w);
         }},
        {"alltoallv, null type",
         [=](auto& f) {
             return f.Alltoallv(from, counts, places, MPI_DATATYPE_NULL, to, counts, places, MPI_INT, w);
         }},
        {"alltoallw, negative count",
         [=](auto& f) { return f.Alltoallw(from, bad_counts, places, types, to, counts, places, types, w); }},
        {"allgather, negative count",
         [=](auto& f) { return f.Allgather(from, 1, MPI_INT, to, -3, MPI_INT, w); }},
        {"allgather, null type",
         [=](auto& f) { return f.Allgather(from, 1, MPI_DATATYPE_NULL, to, 1, MPI_INT, w); }},
        {"bcast, negative count", [=](auto& f) { return f.Bcast(to, -1, MPI_INT, 0, w); }},
        {"bcast, null type", [=](auto& f) { return f.Bcast(to, 1, MPI_DATATYPE_NULL, 0, w); }},
        {"bcast, root too large", [=](auto& f) { return f.Bcast(to, 1, MPI_INT, n, w); }},
        {"bcast, negative root", [=](auto& f) { return f.Bcast(to, 1, MPI_INT, -1, w); }},
        {"bcast, null communicator", [=](auto& f) { return f.Bcast(to, 1, MPI_INT, 0, MPI_COMM_NULL); }},
#ifndef OPEN_MPI  // which does not look at these
        {"allgatherv, negative count",
         [=](auto& f) { return f.Allgatherv(from, 1, MPI_INT, to, bad_counts, places, MPI_INT, w); }},
        {"alltoall, null buffer",
         [=](auto& f) { return f.Alltoall(nullptr, 1, MPI_INT, to, 1, MPI_INT, w); }},
        {"alltoall, same buffer", [=](auto& f) { return f.Alltoall(to, 1, MPI_INT, to, 1, MPI_INT, w); }},
        {"bcast, null buffer", [=](auto& f) { return f.Bcast(nullptr, 1, MPI_INT, 0, w); }},
#endif
    };
}

// The facts read for a call are remembered for the next one like it: an error of that next one alone must be
// found.
void check_after_its_like(const Functions& f) {
    const MPI_Comm w = MPI_COMM_WORLD;
    auto alltoallv = [&](const int* some) {
        return f.Alltoallv(from, some, places, MPI_INT, to, counts, places, MPI_INT, w);
    };
    auto bcast = [&](int root) { return f.Bcast(to, 1, MPI_INT, root, w); };
    for (int i = 0; i < 3; ++i) {
        CHECK(alltoallv(counts) == MPI_SUCCESS);
        CHECK(class_of(alltoallv(bad_counts)) == MPI_ERR_COUNT);
        CHECK(bcast(0) == MPI_SUCCESS);
        CHECK(class_of(bcast(-1)) == MPI_ERR_ROOT);
        CHECK(class_of(bcast(world_size())) == MPI_ERR_ROOT);
#ifndef OPEN_MPI  // which does not look at it
        CHECK(f.Alltoall(from, 1, MPI_INT, to, 1, MPI_INT, w) == MPI_SUCCESS);
        CHECK(class_of(f.Alltoall(to, 1, MPI_INT, to, 1, MPI_INT, w)) == MPI_ERR_BUFFER);
#endif
    }
}

#ifdef MPICH  // whose handles are numbers: Open MPI's are addresses, which it follows
// A number that is no type: the error is the communicator's, as the library has it.
void check_no_type() {
    MPI_Comm comm;
    MPI_Errhandler counting;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    warm_up(comm);
    MPI_Comm_create_errhandler(handler, &counting);
    MPI_Comm_set_errhandler(comm, counting);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    handled = 0;
    const int code = MPI_Alltoall(from, 1, static_cast<MPI_Datatype>(0x12345), to, 1, MPI_INT, comm);
    CHECK(class_of(code) == MPI_ERR_TYPE && handled == 1);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&counting);
    warm_up(comm);
    MPI_Comm_free(&comm);
}

// One rank calls on a communicator that is freed, whose handle is then given to another.
void check_stale_communicator() {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const MPI_Comm stale = comm;
    MPI_Comm_free(&comm);
    if (world_rank() == 0)
        CHECK(class_of(MPI_Alltoall(from, 1, MPI_INT, to, 1, MPI_INT, stale)) == MPI_ERR_COMM);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    CHECK(comm == stale);
    for (int i = 0; i < 4; ++i) warm_up(comm);
    MPI_Comm_free(&comm);
}

// Blocks of nothing may be of a type that was freed.
void check_freed_type_of_nothing() {
    MPI_Datatype freed, some[16];
    MPI_Type_contiguous(2, MPI_INT, &freed);
    MPI_Type_commit(&freed);
    for (int i = 0; i < 16; ++i) some[i] = freed;
    MPI_Type_free(&freed);
    const int rank = world_rank(), size = world_size();
    const int behind = (rank + 1) % size, before = (rank + size - 1) % size;
    int sent[16] = {}, received[16] = {}, nowhere[16] = {};
    MPI_Datatype send_types[16], recv_types[16];
    std::copy_n(some, 16, send_types);
    std::copy_n(some, 16, recv_types);
    sent[behind] = received[before] = 1;
    send_types[behind] = recv_types[before] = MPI_INT;
    for (int i = 0; i < 4; ++i) {
        from[0] = rank + i;
        to[0] = -1;
        MPI_Alltoallw(from, sent, nowhere, send_types, to, received, nowhere, recv_types, MPI_COMM_WORLD);
        CHECK(to[0] == before + i);
    }
}
#endif

// A handler that throws, through the library's frames and ours.
void thrower(MPI_Comm*, int* code, ...) { throw *code; }
void check_thrower() {
    MPI_Errhandler throwing;
    MPI_Comm_create_errhandler(thrower, &throwing);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, throwing);
    int caught = 0;
    for (int i = 0; i < 3; ++i) try {
            MPI_Bcast(to, -1, MPI_INT, 0, MPI_COMM_WORLD);
        } catch (int) {
            ++caught;
        }
    CHECK(caught == 3);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&throwing);
    warm_up(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 16; ++i)
        counts[i] = 1, places[i] = i, bad_counts[i] = i == 0 ? -1 : 1, types[i] = MPI_INT;
    warm_up(MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    const Functions called = called_functions(), own = library_functions();
    for (const Case& c : cases()) {
        const int wanted = class_of(c.call(own)), got = class_of(c.call(called));
        const std::string text = std::string(c.what) + ": class " + std::to_string(got) +
                                 ", the MPI library says " + std::to_string(wanted);
        CHECK_SAYING(got == wanted && wanted != MPI_SUCCESS, text.c_str());
        warm_up(MPI_COMM_WORLD);
    }
    check_after_its_like(called);
#ifdef MPICH
    check_no_type();
    check_stale_communicator();
    check_freed_type_of_nothing();
    handled = 0;
#endif
    MPI_Errhandler counting;
    MPI_Comm_create_errhandler(handler, &counting);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, counting);
    MPI_Bcast(to, -1, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK(handled == 1);
    check_thrower();
    const int verdict = finish("errors");
    MPI_Finalize();
    return verdict;
}
