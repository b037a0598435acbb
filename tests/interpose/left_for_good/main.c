/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators of one rank, whose calls are left to MPI for good, and of all ranks, whose calls are not, by
   turns: each is freed, so that the next may have its handle. A tool below libcoco counts what is passed on:
   all 10 calls on the one kind, the first 2 on the other. */
#include "../check.h"

static void use(MPI_Comm comm) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int* from = malloc(sizeof(int) * (size_t)size);
    int* to = malloc(sizeof(int) * (size_t)size);
    for (int call = 0; call < 10; ++call) {
        for (int i = 0; i < size; ++i) from[i] = rank * 1000 + i + call;
        MPI_Alltoall(from, 1, MPI_INT, to, 1, MPI_INT, comm);
        for (int i = 0; i < size; ++i) expect(to[i], i * 1000 + rank + call, "alltoall");
    }
    free(from);
    free(to);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    for (int turn = 0; turn < CALLS; ++turn) {
        MPI_Comm comm;
        MPI_Comm_dup(turn % 2 == 0 ? MPI_COMM_SELF : MPI_COMM_WORLD, &comm);
        use(comm);
        MPI_Comm_free(&comm);
    }
    MPI_Finalize();
    return wrong != 0;
}
