// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI names that programs call: MPI_X, and PMPI_X for those who call that (Open MPI's Fortran, tools
// above us). Each forwards to dispatch; what is handed back goes on by the name it came in: MPI_X to the next
// tool or the library, PMPI_X to the library. A call seen while this thread is inside one of ours goes
// straight to the library; where there is no library that libcoco serves (mpi/library.h), a call goes to
// where it would have gone without libcoco.
//
// Parameters are as in every family's registers (mpi/handles.h): arrays of handles, and handles that the
// library writes, are void*.
#include "dispatch/entry.h"
#include "dispatch/lifecycle.h"
#include "dispatch/narrowed.h"
#include "heap/heap.h"
#include "mpi/library.h"

namespace {

using coco::algorithms::Collective;
using coco::dispatch::Args;
using coco::dispatch::Types;
using coco::mpi::Aint;
using coco::mpi::Comm;
using coco::mpi::Count;
using coco::mpi::Datatype;
using coco::mpi::Errhandler;
using coco::mpi::Group;
using coco::mpi::Info;
using coco::mpi::lib;
using coco::mpi::Library;
using coco::mpi::narrow;

template <class Function>
using Own = Function Library::*;  // a function of the library, by its place in the table

template <class Function>
Function own_or_stop(Function own, const char* name) {
    if (own == nullptr) coco::mpi::stop_lacking(name);
    return own;
}

// The next tool's (or the library's) MPI_X; where the loader knows none, the library's own.
template <class Function>
Function next_or(const char* name, Function own) {
    void* next = coco::mpi::next_function(name);
    return next != nullptr ? reinterpret_cast<Function>(next) : own_or_stop(own, name);
}

template <class Function>
Function left_alone(Own<Function>, const char* name, const void* caller) {
    return reinterpret_cast<Function>(coco::mpi::left_alone(name, caller));
}

}  // namespace

#define COCO_DOOR extern "C" __attribute__((visibility("default")))

// A door that passes a call on where there is no library that we serve.
#define COCO_UNLESS_SERVED(prefix, Name, arguments)  \
    if (coco::mpi::served() == nullptr) [[unlikely]] \
        return left_alone(&Library::Name, prefix #Name, __builtin_return_address(0)) arguments;

// Both names of one function: its parameters in brackets, the Args they make, and its arguments to pass on. A
// large-count form that the library does not have is served by its int form.
#define COCO_BOTH(Name, parameters, arguments, ...)                                               \
    COCO_DOOR int MPI_##Name parameters {                                                         \
        COCO_UNLESS_SERVED("MPI_", Name, arguments)                                               \
        if (lib().Name == nullptr) return coco::dispatch::call_narrowed(Args __VA_ARGS__);        \
        if (coco::dispatch::t_inside != 0) return lib().Name arguments;                           \
        static const auto next = next_or("MPI_" #Name, lib().Name);                               \
        if (const auto* known = coco::dispatch::find_passing(Args __VA_ARGS__); known != nullptr) \
            return coco::dispatch::hand_on(*known, [&] { return next arguments; });               \
        return coco::dispatch::enter(Args __VA_ARGS__, [&] { return next arguments; });           \
    }                                                                                             \
    COCO_DOOR int PMPI_##Name parameters {                                                        \
        COCO_UNLESS_SERVED("PMPI_", Name, arguments)                                              \
        const auto own = lib().Name;                                                              \
        if (own == nullptr) return coco::dispatch::call_narrowed(Args __VA_ARGS__);               \
        if (coco::dispatch::t_inside != 0) return own arguments;                                  \
        if (const auto* known = coco::dispatch::find_passing(Args __VA_ARGS__); known != nullptr) \
            return coco::dispatch::hand_on(*known, [&] { return own arguments; });                \
        return coco::dispatch::enter(Args __VA_ARGS__, [&] { return own arguments; });            \
    }

// The collectives by what they are told of their blocks. `name`: algorithms::Collective.
#define COCO_PLAIN(Name, name, Count)                                                                   \
    COCO_BOTH(Name,                                                                                     \
              (const void* sendbuf, Count sendcount, Datatype sendtype, void* recvbuf, Count recvcount, \
               Datatype recvtype, Comm comm),                                                           \
              (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),                       \
              {.collective = Collective::name,                                                          \
               .send = {.buffer = sendbuf, .count = sendcount, .type = narrow(sendtype)},               \
               .recv = {.buffer = recvbuf, .count = recvcount, .type = narrow(recvtype)},               \
               .comm = narrow(comm)})
#define COCO_V(Name, name, Count, Displacement)                                                          \
    COCO_BOTH(Name,                                                                                      \
              (const void* sendbuf, const Count sendcounts[], const Displacement sdispls[],              \
               Datatype sendtype, void* recvbuf, const Count recvcounts[], const Displacement rdispls[], \
               Datatype recvtype, Comm comm),                                                            \
              (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm),    \
              {.collective = Collective::name,                                                           \
               .send = {.buffer = sendbuf,                                                               \
                        .type = narrow(sendtype),                                                        \
                        .counts = sendcounts,                                                            \
                        .displacements = sdispls},                                                       \
               .recv = {.buffer = recvbuf,                                                               \
                        .type = narrow(recvtype),                                                        \
                        .counts = recvcounts,                                                            \
                        .displacements = rdispls},                                                       \
               .comm = narrow(comm)})
#define COCO_W(Name, name, Count, Displacement)                                                              \
    COCO_BOTH(Name,                                                                                          \
              (const void* sendbuf, const Count sendcounts[], const Displacement sdispls[],                  \
               const void* sendtypes, void* recvbuf, const Count recvcounts[], const Displacement rdispls[], \
               const void* recvtypes, Comm comm),                                                            \
              (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm),      \
              {.collective = Collective::name,                                                               \
               .send = {.buffer = sendbuf,                                                                   \
                        .counts = sendcounts,                                                                \
                        .displacements = sdispls,                                                            \
                        .types = Types(sendtypes)},                                                          \
               .recv = {.buffer = recvbuf,                                                                   \
                        .counts = recvcounts,                                                                \
                        .displacements = rdispls,                                                            \
                        .types = Types(recvtypes)},                                                          \
               .comm = narrow(comm)})
#define COCO_GATHERV(Name, name, Count, Displacement)                                                \
    COCO_BOTH(Name,                                                                                  \
              (const void* sendbuf, Count sendcount, Datatype sendtype, void* recvbuf,               \
               const Count recvcounts[], const Displacement displs[], Datatype recvtype, Comm comm), \
              (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm),           \
              {.collective = Collective::name,                                                       \
               .send = {.buffer = sendbuf, .count = sendcount, .type = narrow(sendtype)},            \
               .recv = {.buffer = recvbuf,                                                           \
                        .type = narrow(recvtype),                                                    \
                        .counts = recvcounts,                                                        \
                        .displacements = displs},                                                    \
               .comm = narrow(comm)})

// The int and the large-count form differ in the types of counts and displacements; those of
// MPI_Neighbor_alltoallw are addresses in both.
#define COCO_COLLECTIVES(suffix, Count, Displacement)                                             \
    COCO_PLAIN(Alltoall##suffix, alltoall, Count)                                                 \
    COCO_V(Alltoallv##suffix, alltoallv, Count, Displacement)                                     \
    COCO_W(Alltoallw##suffix, alltoallw, Count, Displacement)                                     \
    COCO_PLAIN(Allgather##suffix, allgather, Count)                                               \
    COCO_GATHERV(Allgatherv##suffix, allgatherv, Count, Displacement)                             \
    COCO_PLAIN(Neighbor_alltoall##suffix, neighbor_alltoall, Count)                               \
    COCO_V(Neighbor_alltoallv##suffix, neighbor_alltoallv, Count, Displacement)                   \
    COCO_W(Neighbor_alltoallw##suffix, neighbor_alltoallw, Count, Aint)                           \
    COCO_PLAIN(Neighbor_allgather##suffix, neighbor_allgather, Count)                             \
    COCO_GATHERV(Neighbor_allgatherv##suffix, neighbor_allgatherv, Count, Displacement)           \
    COCO_BOTH(Bcast##suffix, (void* buffer, Count count, Datatype datatype, int root, Comm comm), \
              (buffer, count, datatype, root, comm),                                              \
              {.collective = Collective::bcast,                                                   \
               .recv = {.buffer = buffer, .count = count, .type = narrow(datatype)},              \
               .root = root,                                                                      \
               .comm = narrow(comm)})

COCO_COLLECTIVES(, int, int)
COCO_COLLECTIVES(_c, Count, Aint)

// Life cycle: the next tool's function is called here too, so that tools below us start and stop with MPI.
namespace {

template <class Function, class... Arguments>
int start_mpi(Function next, Function own, Arguments... arguments) {
    if (coco::dispatch::t_inside != 0) return own(arguments...);
    coco::dispatch::Inside inside;
    coco::dispatch::before_init();
    int result = next(arguments...);
    if (result == coco::mpi::kSuccess) coco::dispatch::after_init();
    return result;
}

template <class Function>
int start_session(Function next, Function own, Info info, Errhandler errhandler, void* session) {
    if (coco::dispatch::t_inside != 0) {
        coco::dispatch::note_session();
        return own(info, errhandler, session);
    }
    coco::dispatch::Inside inside;
    coco::dispatch::before_session_init();
    int result = next(info, errhandler, session);
    if (result == coco::mpi::kSuccess)
        coco::dispatch::after_session_init(coco::mpi::load<coco::mpi::Session>(session));
    return result;
}

int stop_mpi(int (*next)(), int (*own)()) {
    if (coco::dispatch::t_inside != 0) return own();
    coco::dispatch::Inside inside;
    coco::dispatch::before_finalize();
    const int result = next();
    if (result == coco::mpi::kSuccess) coco::dispatch::after_finalize();
    return result;
}

}  // namespace

// Both names of one function: `call` is made of `next`, the function to go on to, and `own`, the library's.
#define COCO_BOTH_NAMES(Name, parameters, arguments, call)                    \
    COCO_DOOR int MPI_##Name parameters {                                     \
        COCO_UNLESS_SERVED("MPI_", Name, arguments)                           \
        [[maybe_unused]] const auto own = lib().Name;                         \
        [[maybe_unused]] static const auto next = next_or("MPI_" #Name, own); \
        call                                                                  \
    }                                                                         \
    COCO_DOOR int PMPI_##Name parameters {                                    \
        COCO_UNLESS_SERVED("PMPI_", Name, arguments)                          \
        const auto next = own_or_stop(lib().Name, "PMPI_" #Name);             \
        [[maybe_unused]] const auto own = next;                               \
        call                                                                  \
    }
// The same for a function that makes MPI start: a second MPI library may have come since.
#define COCO_STARTS(Name, parameters, arguments, call) \
    COCO_BOTH_NAMES(Name, parameters, arguments, {     \
        coco::mpi::look_again();                       \
        COCO_UNLESS_SERVED("MPI_", Name, arguments)    \
        call                                           \
    })

COCO_STARTS(Init, (int* argc, char*** argv), (argc, argv), { return start_mpi(next, own, argc, argv); })
COCO_STARTS(Init_thread, (int* argc, char*** argv, int required, int* provided),
            (argc, argv, required, provided),
            { return start_mpi(next, own, argc, argv, required, provided); })
// Without sessions in the library there is an error to return, and no handler to raise it.
COCO_DOOR int MPI_Session_init(Info info, Errhandler errhandler, void* session) {
    COCO_UNLESS_SERVED("MPI_", Session_init, (info, errhandler, session))
    if (lib().Session_init == nullptr) return lib().constants.err_other;
    coco::mpi::look_again();
    COCO_UNLESS_SERVED("MPI_", Session_init, (info, errhandler, session))
    static const auto next = next_or("MPI_Session_init", lib().Session_init);
    return start_session(next, lib().Session_init, info, errhandler, session);
}
COCO_DOOR int PMPI_Session_init(Info info, Errhandler errhandler, void* session) {
    COCO_UNLESS_SERVED("PMPI_", Session_init, (info, errhandler, session))
    if (lib().Session_init == nullptr) return lib().constants.err_other;
    return start_session(lib().Session_init, lib().Session_init, info, errhandler, session);
}
COCO_BOTH_NAMES(Finalize, (), (), { return stop_mpi(next, own); })

// The ends of communicators.
COCO_BOTH_NAMES(Comm_free, (void* comm), (comm), { return coco::dispatch::end_communicator(next, comm); })
COCO_BOTH_NAMES(Comm_disconnect, (void* comm), (comm),
                { return coco::dispatch::end_communicator(next, comm); })

// The beginnings of communicators: a function that makes one from `parent`.
#define COCO_MAKES(Name, parent, made, parameters, arguments)                                   \
    COCO_BOTH_NAMES(Name, parameters, arguments, {                                              \
        return coco::dispatch::make_communicator(parent, made, [&] { return next arguments; }); \
    })

COCO_MAKES(Comm_split, comm, made, (Comm comm, int color, int key, void* made), (comm, color, key, made))
COCO_MAKES(Comm_split_type, comm, made, (Comm comm, int type, int key, Info info, void* made),
           (comm, type, key, info, made))
COCO_MAKES(Comm_create, comm, made, (Comm comm, Group group, void* made), (comm, group, made))
COCO_MAKES(Cart_create, comm, made,
           (Comm comm, int dimensions, const int* sizes, const int* periods, int reorder, void* made),
           (comm, dimensions, sizes, periods, reorder, made))
COCO_MAKES(Cart_sub, comm, made, (Comm comm, const int* remains, void* made), (comm, remains, made))
COCO_MAKES(Graph_create, comm, made,
           (Comm comm, int nodes, const int* index, const int* edges, int reorder, void* made),
           (comm, nodes, index, edges, reorder, made))
COCO_MAKES(Dist_graph_create, comm, made,
           (Comm comm, int count, const int* sources, const int* degrees, const int* destinations,
            const int* weights, Info info, int reorder, void* made),
           (comm, count, sources, degrees, destinations, weights, info, reorder, made))
COCO_MAKES(Dist_graph_create_adjacent, comm, made,
           (Comm comm, int indegree, const int* sources, const int* source_weights, int outdegree,
            const int* destinations, const int* destination_weights, Info info, int reorder, void* made),
           (comm, indegree, sources, source_weights, outdegree, destinations, destination_weights, info,
            reorder, made))

// Open MPI copies attributes there as if it duplicated the parent, though the ranks are others.
COCO_BOTH_NAMES(Comm_create_group, (Comm comm, Group group, int tag, void* made), (comm, group, tag, made), {
    return coco::dispatch::make_group_communicator([&] { return next(comm, group, tag, made); });
})

// With Open MPI a beginning that takes its time.
COCO_BOTH_NAMES(Comm_idup, (Comm comm, void* made, void* request), (comm, made, request), {
    if (lib().manners.makes_one_comm_at_a_time) coco::dispatch::before_idup();
    return next(comm, made, request);
})

// Memory from MPI_Alloc_mem lies on the shared heap like malloc's; all of it does, so that Free_mem knows
// whose it is.
namespace {

int alloc_mem(Aint size, Info info, void* baseptr) {
    if (size < 0) return lib().Alloc_mem(size, info, baseptr);  // raises the error
    void* memory = coco::heap::allocate_shared(64, size > 0 ? static_cast<std::size_t>(size) : 1);
    if (memory == nullptr) return coco::dispatch::raise_error(lib().comm_world, lib().constants.err_no_mem);
    *static_cast<void**>(baseptr) = memory;
    return coco::mpi::kSuccess;
}

int free_mem(void* base) {
    coco::heap::release(base);
    return coco::mpi::kSuccess;
}

}  // namespace

COCO_BOTH_NAMES(Alloc_mem, (Aint size, Info info, void* baseptr), (size, info, baseptr),
                { return alloc_mem(size, info, baseptr); })
COCO_BOTH_NAMES(Free_mem, (void* base), (base), { return free_mem(base); })
