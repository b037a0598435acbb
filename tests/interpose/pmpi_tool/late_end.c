/* SPDX-License-Identifier: BSD-3-Clause */
/* A PMPI tool that puts the end of MPI off until the program ends, as tools do that have something left to ask of MPI then. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void end(void) {
    int ranks = 0, sum = 0, one = 1;
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    PMPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 50; ++i) PMPI_Bcast(&sum, 1, MPI_INT, 0, MPI_COMM_WORLD);
    fprintf(stderr, "tool: late end %s\n", sum == ranks ? "well" : "wrong");
    PMPI_Finalize();
}

int MPI_Finalize(void) {
    atexit(end);
    return MPI_SUCCESS;
}
