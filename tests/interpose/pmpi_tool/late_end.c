/* SPDX-License-Identifier: BSD-3-Clause */
/* A PMPI tool that puts the end of MPI off until the program ends, as tools do that have something left to ask of MPI then. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void end(void) {
    int rank = 0, is_well = 1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i <= 50; ++i) {
        int told = rank == 0 ? i : 0;
        PMPI_Bcast(&told, 1, MPI_INT, 0, MPI_COMM_WORLD);
        is_well = is_well && told == i;
    }
    fprintf(stderr, "tool: late end %s\n", is_well ? "well" : "wrong");
    PMPI_Finalize();
}

int MPI_Finalize(void) {
    atexit(end);
    return MPI_SUCCESS;
}
