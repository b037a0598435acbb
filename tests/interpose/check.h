/* SPDX-License-Identifier: BSD-3-Clause */
/* What the C situations share: a few calls of each collective with known results. Plain MPI, nothing else. */
#ifndef SITUATION_CHECK_H
#define SITUATION_CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define CALLS 20
#define INTS 512

static int wrong = 0;

static void expect(int got, int wanted, const char* what) {
    if (got != wanted && wrong++ < 5) fprintf(stderr, "%s: %d instead of %d\n", what, got, wanted);
}

/* So many calls of alltoall on a communicator, of an int a block. */
__attribute__((unused)) static void use_alltoall(MPI_Comm comm, int calls) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int* from = malloc(sizeof(int) * (size_t)size);
    int* to = malloc(sizeof(int) * (size_t)size);
    for (int call = 0; call < calls; ++call) {
        for (int i = 0; i < size; ++i) from[i] = rank * 1000 + i + call;
        MPI_Alltoall(from, 1, MPI_INT, to, 1, MPI_INT, comm);
        for (int i = 0; i < size; ++i) expect(to[i], i * 1000 + rank + call, "alltoall");
    }
    free(from);
    free(to);
}

/* CALLS calls of each of alltoall, allgather and bcast. */
__attribute__((unused)) static void use_collectives(void) {
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int* from = malloc(sizeof(int) * INTS * (size_t)size);
    int* to = malloc(sizeof(int) * INTS * (size_t)size);
    for (int call = 0; call < CALLS; ++call) {
        for (int i = 0; i < INTS * size; ++i) from[i] = rank * 100000 + i / INTS * 1000 + call;
        MPI_Alltoall(from, INTS, MPI_INT, to, INTS, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < INTS * size; ++i)
            expect(to[i], i / INTS * 100000 + rank * 1000 + call, "alltoall");
        MPI_Allgather(from, INTS, MPI_INT, to, INTS, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < INTS * size; ++i) expect(to[i], i / INTS * 100000 + call, "allgather");
        MPI_Bcast(from, INTS, MPI_INT, call % size, MPI_COMM_WORLD);
        for (int i = 0; i < INTS; ++i) expect(from[i], call % size * 100000 + call, "bcast");
    }
    free(from);
    free(to);
}

#endif
