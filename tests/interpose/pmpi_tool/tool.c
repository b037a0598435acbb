/* SPDX-License-Identifier: BSD-3-Clause */
/* Another PMPI tool, as people preload them: counts MPI_Init and MPI_Alltoall, forwards, reports at finalize.
 */
#include <mpi.h>
#include <stdio.h>

static int inits, alltoalls;

int MPI_Init(int* argc, char*** argv) {
    ++inits;
    return PMPI_Init(argc, argv);
}

int MPI_Alltoall(const void* from, int sends, MPI_Datatype send_type, void* to, int receives,
                 MPI_Datatype recv_type, MPI_Comm comm) {
    ++alltoalls;
    return PMPI_Alltoall(from, sends, send_type, to, receives, recv_type, comm);
}

int MPI_Finalize(void) {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "tool: rank %d saw %d MPI_Init, %d MPI_Alltoall\n", rank, inits, alltoalls);
    return PMPI_Finalize();
}
