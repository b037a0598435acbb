/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls a function that the MPI library does not have: the process ends with a line, as the loader would end it. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int (*large)(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm) =
        (int (*)(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm))dlsym(RTLD_DEFAULT,
                                                                                                    "MPI_Alltoall_c");
    int send = 1, recv = 0;
    if (large != NULL) large(&send, 1, MPI_INT, &recv, 1, MPI_INT, MPI_COMM_WORLD);
    fprintf(stderr, "MPI_Alltoall_c came back\n");
    MPI_Finalize();
    return 1;
}
