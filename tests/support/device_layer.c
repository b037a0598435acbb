/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for an MPI library that knows memory of devices: a tool below libcoco that reaches such buffers by their shadows
   (device_runtime.c), and counts the calls that name one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>

static void* (*shadow_of)(const void*);
static int calls;

/* How many collectives of this process have come here so far. */
int device_layer_calls(void);
int device_layer_calls(void) { return calls; }

static void* at(const void* buffer) {
    if (shadow_of == NULL) {
        void* runtime = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
        if (runtime != NULL) *(void**)&shadow_of = dlsym(runtime, "device_shadow");
    }
    void* shadow = shadow_of == NULL || buffer == MPI_IN_PLACE ? NULL : shadow_of(buffer);
    return shadow != NULL ? shadow : (void*)(size_t)buffer;
}

#define PLAIN_PARAMETERS                                                                                    \
    const void *from, int sends, MPI_Datatype send_type, void *to, int receives, MPI_Datatype receive_type, \
        MPI_Comm comm
#define PLAIN at(from), sends, send_type, at(to), receives, receive_type, comm
#define GATHER_V_PARAMETERS                                                                             \
    const void *from, int sends, MPI_Datatype send_type, void *to, const int *counts, const int *where, \
        MPI_Datatype receive_type, MPI_Comm comm
#define GATHER_V at(from), sends, send_type, at(to), counts, where, receive_type, comm
#define V_PARAMETERS                                                                            \
    const void *from, const int *sends, const int *sent_from, MPI_Datatype send_type, void *to, \
        const int *counts, const int *where, MPI_Datatype receive_type, MPI_Comm comm
#define V at(from), sends, sent_from, send_type, at(to), counts, where, receive_type, comm
#define W_PARAMETERS(Displacement)                                                                     \
    const void *from, const int *sends, const Displacement *sent_from, const MPI_Datatype *send_types, \
        void *to, const int *counts, const Displacement *where, const MPI_Datatype *receive_types,     \
        MPI_Comm comm
#define W at(from), sends, sent_from, send_types, at(to), counts, where, receive_types, comm

#define LAYER(name, parameters, ...)     \
    int MPI_##name parameters {          \
        ++calls;                         \
        return PMPI_##name(__VA_ARGS__); \
    }

LAYER(Alltoall, (PLAIN_PARAMETERS), PLAIN)
LAYER(Allgather, (PLAIN_PARAMETERS), PLAIN)
LAYER(Neighbor_alltoall, (PLAIN_PARAMETERS), PLAIN)
LAYER(Neighbor_allgather, (PLAIN_PARAMETERS), PLAIN)
LAYER(Allgatherv, (GATHER_V_PARAMETERS), GATHER_V)
LAYER(Neighbor_allgatherv, (GATHER_V_PARAMETERS), GATHER_V)
LAYER(Alltoallv, (V_PARAMETERS), V)
LAYER(Neighbor_alltoallv, (V_PARAMETERS), V)
LAYER(Alltoallw, (W_PARAMETERS(int)), W)
LAYER(Neighbor_alltoallw, (W_PARAMETERS(MPI_Aint)), W)
LAYER(Bcast, (void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm), at(buffer), count, type,
      root, comm)

int MPI_Pack(const void* from, int count, MPI_Datatype type, void* to, int bytes, int* position,
             MPI_Comm comm) {
    return PMPI_Pack(at(from), count, type, to, bytes, position, comm);
}
int MPI_Unpack(const void* from, int bytes, int* position, void* to, int count, MPI_Datatype type,
               MPI_Comm comm) {
    return PMPI_Unpack(from, bytes, position, at(to), count, type, comm);
}
