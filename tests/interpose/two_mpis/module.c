/* SPDX-License-Identifier: BSD-3-Clause */
/* A job of one rank by the MPI library that this module is linked with. */
#include <mpi.h>
#include <stdio.h>

int run(void);

int run(void) {
    int send = 7, recv = 0, provided, size = 0;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SINGLE, &provided);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 20; ++i) MPI_Alltoall(&send, 1, MPI_INT, &recv, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Finalize();
    return size == 1 && recv == 7 ? 0 : 1;
}
