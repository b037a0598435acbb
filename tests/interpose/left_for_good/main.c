/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators of one rank, whose calls are left to MPI for good, and of all ranks, whose calls are not, by
   turns: each is freed, so that the next may have its handle. A tool below libcoco counts what is passed on:
   all 150 calls on the one kind, on the other those before the communicator is set up. */
#include "../check.h"

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    for (int turn = 0; turn < CALLS; ++turn) {
        MPI_Comm comm;
        MPI_Comm_dup(turn % 2 == 0 ? MPI_COMM_SELF : MPI_COMM_WORLD, &comm);
        use_alltoall(comm, 150);
        MPI_Comm_free(&comm);
    }
    MPI_Finalize();
    return wrong != 0;
}
