// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI names that programs call: MPI_X, and PMPI_X for those who call that (Open MPI's Fortran, tools
// above us). Each forwards to dispatch; what is handed back goes on by the name it came in: MPI_X to the next
// tool or the library, PMPI_X to the library. A call seen while this thread is inside one of ours goes
// straight to the library.
#include "dispatch/entry.h"
#include "heap/heap.h"

namespace {

using coco::algorithms::Collective;
using coco::comm::mpi;
using coco::dispatch::Args;

// The next tool's (or the library's) MPI_X; where the loader knows none, the library's own.
template <class Function>
Function next_or(const char* name, Function own) {
    void* next = coco::comm::next_function(name);
    return next != nullptr ? reinterpret_cast<Function>(next) : own;
}

}  // namespace

#define COCO_DOOR extern "C" __attribute__((visibility("default")))

// Both names of one function: its parameters in brackets, the Args they make, and its arguments to pass on.
#define COCO_BOTH(Name, parameters, arguments, ...)                                           \
    COCO_DOOR int MPI_##Name parameters {                                                     \
        if (coco::dispatch::t_inside != 0) return mpi().Name arguments;                       \
        static const auto next = next_or("MPI_" #Name, mpi().Name);                           \
        return coco::dispatch::enter(Args __VA_ARGS__, [&] { return next arguments; });       \
    }                                                                                         \
    COCO_DOOR int PMPI_##Name parameters {                                                    \
        if (coco::dispatch::t_inside != 0) return mpi().Name arguments;                       \
        return coco::dispatch::enter(Args __VA_ARGS__, [&] { return mpi().Name arguments; }); \
    }

// The collectives by what they are told of their blocks. `name`: algorithms::Collective.
#define COCO_PLAIN(Name, name, Count)                                                                       \
    COCO_BOTH(Name,                                                                                         \
              (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf, Count recvcount, \
               MPI_Datatype recvtype, MPI_Comm comm),                                                       \
              (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm),                           \
              {.collective = Collective::name,                                                              \
               .send = {.buffer = sendbuf, .count = sendcount, .type = sendtype},                           \
               .recv = {.buffer = recvbuf, .count = recvcount, .type = recvtype},                           \
               .comm = comm})
#define COCO_V(Name, name, Count, Displacement)                                                              \
    COCO_BOTH(                                                                                               \
        Name,                                                                                                \
        (const void* sendbuf, const Count sendcounts[], const Displacement sdispls[], MPI_Datatype sendtype, \
         void* recvbuf, const Count recvcounts[], const Displacement rdispls[], MPI_Datatype recvtype,       \
         MPI_Comm comm),                                                                                     \
        (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm),              \
        {.collective = Collective::name,                                                                     \
         .send = {.buffer = sendbuf, .type = sendtype, .counts = sendcounts, .displacements = sdispls},      \
         .recv = {.buffer = recvbuf, .type = recvtype, .counts = recvcounts, .displacements = rdispls},      \
         .comm = comm})
#define COCO_W(Name, name, Count, Displacement)                                                           \
    COCO_BOTH(                                                                                            \
        Name,                                                                                             \
        (const void* sendbuf, const Count sendcounts[], const Displacement sdispls[],                     \
         const MPI_Datatype sendtypes[], void* recvbuf, const Count recvcounts[],                         \
         const Displacement rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm),                    \
        (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm),         \
        {.collective = Collective::name,                                                                  \
         .send = {.buffer = sendbuf, .counts = sendcounts, .displacements = sdispls, .types = sendtypes}, \
         .recv = {.buffer = recvbuf, .counts = recvcounts, .displacements = rdispls, .types = recvtypes}, \
         .comm = comm})
#define COCO_GATHERV(Name, name, Count, Displacement)                                                        \
    COCO_BOTH(Name,                                                                                          \
              (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, void* recvbuf,                   \
               const Count recvcounts[], const Displacement displs[], MPI_Datatype recvtype, MPI_Comm comm), \
              (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm),                   \
              {.collective = Collective::name,                                                               \
               .send = {.buffer = sendbuf, .count = sendcount, .type = sendtype},                            \
               .recv = {.buffer = recvbuf, .type = recvtype, .counts = recvcounts, .displacements = displs}, \
               .comm = comm})

// The int and the large-count form differ in the types of counts and displacements; those of
// MPI_Neighbor_alltoallw are addresses in both.
#define COCO_COLLECTIVES(suffix, Count, Displacement)                                                     \
    COCO_PLAIN(Alltoall##suffix, alltoall, Count)                                                         \
    COCO_V(Alltoallv##suffix, alltoallv, Count, Displacement)                                             \
    COCO_W(Alltoallw##suffix, alltoallw, Count, Displacement)                                             \
    COCO_PLAIN(Allgather##suffix, allgather, Count)                                                       \
    COCO_GATHERV(Allgatherv##suffix, allgatherv, Count, Displacement)                                     \
    COCO_PLAIN(Neighbor_alltoall##suffix, neighbor_alltoall, Count)                                       \
    COCO_V(Neighbor_alltoallv##suffix, neighbor_alltoallv, Count, Displacement)                           \
    COCO_W(Neighbor_alltoallw##suffix, neighbor_alltoallw, Count, MPI_Aint)                               \
    COCO_PLAIN(Neighbor_allgather##suffix, neighbor_allgather, Count)                                     \
    COCO_GATHERV(Neighbor_allgatherv##suffix, neighbor_allgatherv, Count, Displacement)                   \
    COCO_BOTH(Bcast##suffix, (void* buffer, Count count, MPI_Datatype datatype, int root, MPI_Comm comm), \
              (buffer, count, datatype, root, comm),                                                      \
              {.collective = Collective::bcast,                                                           \
               .recv = {.buffer = buffer, .count = count, .type = datatype},                              \
               .root = root,                                                                              \
               .comm = comm})

COCO_COLLECTIVES(, int, int)
#if MPI_VERSION >= 4
COCO_COLLECTIVES(_c, MPI_Count, MPI_Aint)
#endif

// Life cycle: the next tool's function is called here too, so that tools below us start and stop with MPI.
namespace {

template <class Function, class... Arguments>
int start_mpi(Function next, Function own, Arguments... arguments) {
    if (coco::dispatch::t_inside != 0) return own(arguments...);
    coco::dispatch::Inside inside;
    coco::dispatch::before_init();
    int result = next(arguments...);
    if (result == MPI_SUCCESS) coco::dispatch::after_init();
    return result;
}

#if MPI_VERSION >= 4
template <class Function>
int start_session(Function next, MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
    if (coco::dispatch::t_inside != 0) return mpi().Session_init(info, errhandler, session);
    coco::dispatch::Inside inside;
    coco::dispatch::before_init();
    int result = next(info, errhandler, session);
    if (result == MPI_SUCCESS) coco::dispatch::after_session_init(*session);
    return result;
}
#endif

int stop_mpi(int (*next)(), int (*own)()) {
    if (coco::dispatch::t_inside != 0) return own();
    coco::dispatch::Inside inside;
    coco::dispatch::before_finalize();
    return next();
}

}  // namespace

COCO_DOOR int MPI_Init(int* argc, char*** argv) {
    return start_mpi(next_or("MPI_Init", mpi().Init), mpi().Init, argc, argv);
}
COCO_DOOR int PMPI_Init(int* argc, char*** argv) { return start_mpi(mpi().Init, mpi().Init, argc, argv); }
COCO_DOOR int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    return start_mpi(next_or("MPI_Init_thread", mpi().Init_thread), mpi().Init_thread, argc, argv, required,
                     provided);
}
COCO_DOOR int PMPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    return start_mpi(mpi().Init_thread, mpi().Init_thread, argc, argv, required, provided);
}
COCO_DOOR int MPI_Finalize() { return stop_mpi(next_or("MPI_Finalize", mpi().Finalize), mpi().Finalize); }
COCO_DOOR int PMPI_Finalize() { return stop_mpi(mpi().Finalize, mpi().Finalize); }
#if MPI_VERSION >= 4
COCO_DOOR int MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
    return start_session(next_or("MPI_Session_init", mpi().Session_init), info, errhandler, session);
}
COCO_DOOR int PMPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
    return start_session(mpi().Session_init, info, errhandler, session);
}
#endif

// The ends of communicators, and with Open MPI beginnings that take their time.
using coco::dispatch::end_communicator;

COCO_DOOR int MPI_Comm_free(MPI_Comm* comm) {
    static const auto next = next_or("MPI_Comm_free", mpi().Comm_free);
    return end_communicator(next, comm);
}
COCO_DOOR int PMPI_Comm_free(MPI_Comm* comm) { return end_communicator(mpi().Comm_free, comm); }
COCO_DOOR int MPI_Comm_disconnect(MPI_Comm* comm) {
    static const auto next = next_or("MPI_Comm_disconnect", mpi().Comm_disconnect);
    return end_communicator(next, comm);
}
COCO_DOOR int PMPI_Comm_disconnect(MPI_Comm* comm) { return end_communicator(mpi().Comm_disconnect, comm); }

// The beginnings of communicators: both names of a function that makes one from `parent`.
#define COCO_MAKES(Name, parent, made, parameters, arguments)                                         \
    COCO_DOOR int MPI_##Name parameters {                                                             \
        static const auto next = next_or("MPI_" #Name, mpi().Name);                                   \
        return coco::dispatch::make_communicator(parent, made, [&] { return next arguments; });       \
    }                                                                                                 \
    COCO_DOOR int PMPI_##Name parameters {                                                            \
        return coco::dispatch::make_communicator(parent, made, [&] { return mpi().Name arguments; }); \
    }

COCO_MAKES(Comm_split, comm, made, (MPI_Comm comm, int color, int key, MPI_Comm* made),
           (comm, color, key, made))
COCO_MAKES(Comm_split_type, comm, made, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made),
           (comm, type, key, info, made))
COCO_MAKES(Comm_create, comm, made, (MPI_Comm comm, MPI_Group group, MPI_Comm* made), (comm, group, made))
COCO_MAKES(Cart_create, comm, made,
           (MPI_Comm comm, int dimensions, const int sizes[], const int periods[], int reorder,
            MPI_Comm* made),
           (comm, dimensions, sizes, periods, reorder, made))
COCO_MAKES(Cart_sub, comm, made, (MPI_Comm comm, const int remains[], MPI_Comm* made), (comm, remains, made))
COCO_MAKES(Graph_create, comm, made,
           (MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder, MPI_Comm* made),
           (comm, nodes, index, edges, reorder, made))
COCO_MAKES(Dist_graph_create, comm, made,
           (MPI_Comm comm, int count, const int sources[], const int degrees[], const int destinations[],
            const int weights[], MPI_Info info, int reorder, MPI_Comm* made),
           (comm, count, sources, degrees, destinations, weights, info, reorder, made))
COCO_MAKES(Dist_graph_create_adjacent, comm, made,
           (MPI_Comm comm, int indegree, const int sources[], const int source_weights[], int outdegree,
            const int destinations[], const int destination_weights[], MPI_Info info, int reorder,
            MPI_Comm* made),
           (comm, indegree, sources, source_weights, outdegree, destinations, destination_weights, info,
            reorder, made))

#ifdef OPEN_MPI
COCO_DOOR int MPI_Comm_idup(MPI_Comm comm, MPI_Comm* made, MPI_Request* request) {
    static const auto next = next_or("MPI_Comm_idup", mpi().Comm_idup);
    coco::dispatch::before_idup();
    return next(comm, made, request);
}
COCO_DOOR int PMPI_Comm_idup(MPI_Comm comm, MPI_Comm* made, MPI_Request* request) {
    coco::dispatch::before_idup();
    return mpi().Comm_idup(comm, made, request);
}
#endif

// Memory from MPI_Alloc_mem lies on the shared heap like malloc's; all of it does, so that Free_mem knows
// whose it is.
namespace {

int alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr) {
    if (size < 0) return mpi().Alloc_mem(size, info, baseptr);  // raises the error
    void* memory = coco::heap::allocate_aligned(64, size > 0 ? static_cast<std::size_t>(size) : 1);
    if (memory == nullptr) return coco::dispatch::raise_error(mpi().comm_world, MPI_ERR_NO_MEM);
    *static_cast<void**>(baseptr) = memory;
    return MPI_SUCCESS;
}

int free_mem(void* base) {
    coco::heap::release(base);
    return MPI_SUCCESS;
}

}  // namespace

COCO_DOOR int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr) {
    return alloc_mem(size, info, baseptr);
}
COCO_DOOR int PMPI_Alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr) {
    return alloc_mem(size, info, baseptr);
}
COCO_DOOR int MPI_Free_mem(void* base) { return free_mem(base); }
COCO_DOOR int PMPI_Free_mem(void* base) { return free_mem(base); }
