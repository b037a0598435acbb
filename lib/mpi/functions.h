// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of an MPI library that libcoco calls, with their parameters as all families pass them
// (mpi/handles.h). Arrays of handles, handles that the library writes into the program's memory, and statuses
// are `void*`: their width is the family's. Used by mpi/library.h alone.
#pragma once
#include "mpi/handles.h"

namespace coco::mpi {

using CommCopy = int(Comm, int key, void* extra, void* value, void* copy, int* flag);
using CommDelete = int(Comm, int key, void* value, void* extra);
using TypeCopy = int(Datatype, int key, void* extra, void* value, void* copy, int* flag);
using TypeDelete = int(Datatype, int key, void* value, void* extra);
using UserFunction = void(void* in, void* inout, int* count, Datatype* type);

// X(name, parameters): functions that every MPI since 3.0 has.
#define COCO_MPI_FUNCTIONS(X)                                                                                \
    X(Init, (int*, char***))                                                                                 \
    X(Init_thread, (int*, char***, int, int*))                                                               \
    X(Initialized, (int*))                                                                                   \
    X(Finalize, ())                                                                                          \
    X(Finalized, (int*))                                                                                     \
    X(Abort, (Comm, int))                                                                                    \
    X(Get_library_version, (char*, int*))                                                                    \
    X(Alltoall, (const void*, int, Datatype, void*, int, Datatype, Comm))                                    \
    X(Alltoallv,                                                                                             \
      (const void*, const int*, const int*, Datatype, void*, const int*, const int*, Datatype, Comm))        \
    X(Alltoallw,                                                                                             \
      (const void*, const int*, const int*, const void*, void*, const int*, const int*, const void*, Comm))  \
    X(Allgather, (const void*, int, Datatype, void*, int, Datatype, Comm))                                   \
    X(Allgatherv, (const void*, int, Datatype, void*, const int*, const int*, Datatype, Comm))               \
    X(Bcast, (void*, int, Datatype, int, Comm))                                                              \
    X(Neighbor_alltoall, (const void*, int, Datatype, void*, int, Datatype, Comm))                           \
    X(Neighbor_alltoallv,                                                                                    \
      (const void*, const int*, const int*, Datatype, void*, const int*, const int*, Datatype, Comm))        \
    X(Neighbor_alltoallw, (const void*, const int*, const Aint*, const void*, void*, const int*,             \
                           const Aint*, const void*, Comm))                                                  \
    X(Neighbor_allgather, (const void*, int, Datatype, void*, int, Datatype, Comm))                          \
    X(Neighbor_allgatherv, (const void*, int, Datatype, void*, const int*, const int*, Datatype, Comm))      \
    X(Allreduce, (const void*, void*, int, Datatype, Op, Comm))                                              \
    X(Gather, (const void*, int, Datatype, void*, int, Datatype, int, Comm))                                 \
    X(Gatherv, (const void*, int, Datatype, void*, const int*, const int*, Datatype, int, Comm))             \
    X(Barrier, (Comm))                                                                                       \
    X(Iprobe, (int, int, Comm, int*, void* status))                                                          \
    X(Irecv, (void*, int, Datatype, int, int, Comm, void* request))                                          \
    X(Isend, (const void*, int, Datatype, int, int, Comm, void* request))                                    \
    X(Test, (void* request, int*, void* status))                                                             \
    X(Cancel, (void* request))                                                                               \
    X(Wait, (void* request, void* status))                                                                   \
    X(Waitall, (int, void* requests, void* statuses))                                                        \
    X(Request_get_status, (Request, int*, void* status))                                                     \
    X(Comm_rank, (Comm, int*))                                                                               \
    X(Comm_size, (Comm, int*))                                                                               \
    X(Comm_remote_size, (Comm, int*))                                                                        \
    X(Comm_test_inter, (Comm, int*))                                                                         \
    X(Comm_group, (Comm, void* group))                                                                       \
    X(Group_free, (void* group))                                                                             \
    X(Group_rank, (Group, int*))                                                                             \
    X(Group_size, (Group, int*))                                                                             \
    X(Group_translate_ranks, (Group, int, const int*, Group, int*))                                          \
    X(Comm_split, (Comm, int, int, void* made))                                                              \
    X(Comm_split_type, (Comm, int, int, Info, void* made))                                                   \
    X(Comm_create, (Comm, Group, void* made))                                                                \
    X(Comm_create_group, (Comm, Group, int tag, void* made))                                                 \
    X(Comm_idup, (Comm, void* made, void* request))                                                          \
    X(Comm_free, (void* comm))                                                                               \
    X(Comm_disconnect, (void* comm))                                                                         \
    X(Cart_create, (Comm, int, const int*, const int*, int, void* made))                                     \
    X(Cart_sub, (Comm, const int*, void* made))                                                              \
    X(Graph_create, (Comm, int, const int*, const int*, int, void* made))                                    \
    X(Dist_graph_create, (Comm, int, const int*, const int*, const int*, const int*, Info, int, void* made)) \
    X(Dist_graph_create_adjacent,                                                                            \
      (Comm, int, const int*, const int*, int, const int*, const int*, Info, int, void* made))               \
    X(Topo_test, (Comm, int*))                                                                               \
    X(Cartdim_get, (Comm, int*))                                                                             \
    X(Cart_shift, (Comm, int, int, int*, int*))                                                              \
    X(Graph_neighbors_count, (Comm, int, int*))                                                              \
    X(Graph_neighbors, (Comm, int, int, int*))                                                               \
    X(Dist_graph_neighbors_count, (Comm, int*, int*, int*))                                                  \
    X(Dist_graph_neighbors, (Comm, int, int*, int*, int, int*, int*))                                        \
    X(Comm_create_keyval, (CommCopy*, CommDelete*, int*, void*))                                             \
    X(Comm_get_attr, (Comm, int, void*, int*))                                                               \
    X(Comm_set_attr, (Comm, int, void*))                                                                     \
    X(Comm_call_errhandler, (Comm, int))                                                                     \
    X(Comm_set_errhandler, (Comm, Errhandler))                                                               \
    X(Comm_get_errhandler, (Comm, void* errhandler))                                                         \
    X(Errhandler_free, (void* errhandler))                                                                   \
    X(Type_size_x, (Datatype, Count*))                                                                       \
    X(Type_get_extent_x, (Datatype, Count*, Count*))                                                         \
    X(Type_get_true_extent_x, (Datatype, Count*, Count*))                                                    \
    X(Type_get_envelope, (Datatype, int*, int*, int*, int*))                                                 \
    X(Type_get_contents, (Datatype, int, int, int, int*, Aint*, void* types))                                \
    X(Type_contiguous, (int, Datatype, void* made))                                                          \
    X(Type_create_hindexed, (int, const int*, const Aint*, Datatype, void* made))                            \
    X(Type_commit, (void* type))                                                                             \
    X(Type_free, (void* type))                                                                               \
    X(Type_create_keyval, (TypeCopy*, TypeDelete*, int*, void*))                                             \
    X(Type_get_attr, (Datatype, int, void*, int*))                                                           \
    X(Type_set_attr, (Datatype, int, void*))                                                                 \
    X(Pack, (const void*, int, Datatype, void*, int, int*, Comm))                                            \
    X(Unpack, (const void*, int, int*, void*, int, Datatype, Comm))                                          \
    X(Op_create, (UserFunction*, int, void* op))                                                             \
    X(Op_free, (void* op))                                                                                   \
    X(Alloc_mem, (Aint, Info, void*))                                                                        \
    X(Free_mem, (void*))

// Large-count forms and sessions, MPI 4: null where the library has none.
#define COCO_MPI_FUNCTIONS_4(X)                                                                             \
    X(Alltoall_c, (const void*, Count, Datatype, void*, Count, Datatype, Comm))                             \
    X(Alltoallv_c,                                                                                          \
      (const void*, const Count*, const Aint*, Datatype, void*, const Count*, const Aint*, Datatype, Comm)) \
    X(Alltoallw_c, (const void*, const Count*, const Aint*, const void*, void*, const Count*, const Aint*,  \
                    const void*, Comm))                                                                     \
    X(Allgather_c, (const void*, Count, Datatype, void*, Count, Datatype, Comm))                            \
    X(Allgatherv_c, (const void*, Count, Datatype, void*, const Count*, const Aint*, Datatype, Comm))       \
    X(Bcast_c, (void*, Count, Datatype, int, Comm))                                                         \
    X(Neighbor_alltoall_c, (const void*, Count, Datatype, void*, Count, Datatype, Comm))                    \
    X(Neighbor_alltoallv_c,                                                                                 \
      (const void*, const Count*, const Aint*, Datatype, void*, const Count*, const Aint*, Datatype, Comm)) \
    X(Neighbor_alltoallw_c, (const void*, const Count*, const Aint*, const void*, void*, const Count*,      \
                             const Aint*, const void*, Comm))                                               \
    X(Neighbor_allgather_c, (const void*, Count, Datatype, void*, Count, Datatype, Comm))                   \
    X(Neighbor_allgatherv_c,                                                                                \
      (const void*, Count, Datatype, void*, const Count*, const Aint*, Datatype, Comm))                     \
    X(Session_init, (Info, Errhandler, void* session))                                                      \
    X(Group_from_session_pset, (Session, const char*, void* group))                                         \
    X(Type_get_envelope_c, (Datatype, Count*, Count*, Count*, Count*, int*))                                \
    X(Type_get_contents_c, (Datatype, Count, Count, Count, Count, int*, Aint*, Count*, void* types))        \
    X(Pack_c, (const void*, Count, Datatype, void*, Count, Count*, Comm))                                   \
    X(Unpack_c, (const void*, Count, Count*, void*, Count, Datatype, Comm))

}  // namespace coco::mpi
