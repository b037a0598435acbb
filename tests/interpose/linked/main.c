/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program linked with -lcoco, before MPI, instead of preloaded; it asks the C API too. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coco/coco.h"

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, wrong = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int* send = malloc(ranks * sizeof(int));
    int* recv = malloc(ranks * sizeof(int));
    int on_stack = 0;
    wrong += !coco_is_shared(send) || coco_is_shared(&on_stack) || coco_is_shared(NULL);
    wrong += strlen(coco_version()) < 5;
    for (int round = 0; round < 20; ++round) {
        for (int r = 0; r < ranks; ++r) send[r] = 1000 * round + 10 * rank + r;
        MPI_Alltoall(send, 1, MPI_INT, recv, 1, MPI_INT, MPI_COMM_WORLD);
        for (int r = 0; r < ranks; ++r) wrong += recv[r] != 1000 * round + 10 * r + rank;
    }
    if (wrong) printf("rank %d: %d wrong\n", rank, wrong);
    free(send);
    free(recv);
    MPI_Finalize();
    return wrong != 0;
}
