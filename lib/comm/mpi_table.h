// SPDX-License-Identifier: BSD-3-Clause
//
// The MPI library's own functions and handles, taken from the library itself once it is loaded. The whole lib
// calls MPI through this table only: libcoco.so has no undefined MPI symbol, so that it loads into any
// process, also into one that opens MPI later and in a local scope (Python), and its own calls never come
// back to its doors. Thread safety: mpi() may be called from any thread; the table is immutable once filled.
#pragma once
#include <mpi.h>

#include <cstdint>

namespace coco::comm {

// clang-format off
// Functions that every MPI since 3.0 has.
#define COCO_MPI_FUNCTIONS(X)                                                                                \
    X(Init) X(Init_thread) X(Initialized) X(Finalize) X(Finalized) X(Abort) X(Query_thread)                  \
    X(Alltoall) X(Alltoallv) X(Alltoallw) X(Allgather) X(Allgatherv) X(Bcast) X(Allreduce) X(Gatherv)        \
    X(Gather) X(Barrier) X(Iprobe) X(Irecv) X(Isend) X(Test) X(Cancel) X(Wait) X(Comm_rank) X(Comm_size)     \
    X(Comm_test_inter) X(Comm_group) X(Group_free) X(Group_rank) X(Group_size) X(Group_translate_ranks)      \
    X(Comm_split) X(Comm_free) X(Comm_disconnect) X(Comm_idup)                                                                               \
    X(Comm_create_keyval) X(Comm_get_attr) X(Comm_set_attr) X(Comm_call_errhandler) X(Comm_set_errhandler)   \
    X(Type_size_x) X(Type_get_extent_x) X(Type_get_true_extent_x) X(Type_get_envelope) X(Type_get_contents)  \
    X(Type_free) X(Type_create_keyval) X(Type_get_attr) X(Type_set_attr) X(Pack) X(Unpack)                   \
    X(Alloc_mem) X(Comm_create) X(Comm_get_errhandler) X(Errhandler_free) X(Waitall)                 \
    X(Request_get_status) X(Neighbor_alltoall) X(Neighbor_alltoallv) X(Neighbor_alltoallw) X(Neighbor_allgather)                   \
    X(Neighbor_allgatherv) X(Topo_test) X(Cartdim_get) X(Cart_shift) X(Graph_neighbors_count)                \
    X(Graph_neighbors) X(Dist_graph_neighbors_count) X(Dist_graph_neighbors)                                 \
    X(Op_create) X(Op_free) X(Type_contiguous) X(Type_commit) X(Comm_split_type) X(Cart_create) \
    X(Cart_sub) X(Graph_create) X(Dist_graph_create) X(Dist_graph_create_adjacent) \
    X(Type_create_hindexed)

// Large-count forms and sessions, MPI 4.
#if MPI_VERSION >= 4
#define COCO_MPI_FUNCTIONS_4(X)                                                                              \
    X(Alltoall_c) X(Alltoallv_c) X(Alltoallw_c) X(Allgather_c) X(Allgatherv_c) X(Bcast_c)                    \
    X(Neighbor_alltoall_c) X(Neighbor_alltoallv_c) X(Neighbor_alltoallw_c) X(Neighbor_allgather_c)           \
    X(Neighbor_allgatherv_c)                                                                                 \
    X(Session_init) X(Group_from_session_pset) X(Type_get_envelope_c) X(Type_get_contents_c)                     \
    X(Pack_c) X(Unpack_c)
#else
#define COCO_MPI_FUNCTIONS_4(X)
#endif
// clang-format on

struct MpiTable {
#define COCO_MPI_MEMBER(name) decltype(&::PMPI_##name) name;
    COCO_MPI_FUNCTIONS(COCO_MPI_MEMBER)
    COCO_MPI_FUNCTIONS_4(COCO_MPI_MEMBER)
#undef COCO_MPI_MEMBER
    // Handles: constants in the MPICH family, addresses of the library's objects in Open MPI.
    MPI_Comm comm_world, comm_self, comm_null;
    MPI_Datatype byte, uint64, datatype_null;
    MPI_Op min, max;
    MPI_Errhandler errors_return, errors_are_fatal;
    const char* library;  // the file that it came from
};

// Requires: an MPI library of this flavour is loaded (it is whenever a program calls MPI). Ends the process
// with one line that says what is wrong if there is none, or one of the other family.
const MpiTable& mpi();

// The next definition of a function after ours in the loader's order (another tool's, or the library's), by
// its MPI_ name; null where there is none. For passing calls on so that tools below us see them.
void* next_function(const char* name);

}  // namespace coco::comm
