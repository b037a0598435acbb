/* SPDX-License-Identifier: BSD-3-Clause */
/* The ./app of the pages' commands: collectives of all ranks, compared. It fails where libcoco is not loaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kCalls = 200, kBlock = 1000 };

static int exchange(int* to, int* from, int rank, int ranks) {
    int wrong = 0;
    for (int at = 0; at < kBlock * ranks; ++at) to[at] = rank * ranks + at / kBlock;
    MPI_Alltoall(to, kBlock, MPI_INT, from, kBlock, MPI_INT, MPI_COMM_WORLD);
    for (int at = 0; at < kBlock * ranks; ++at) wrong |= from[at] != at / kBlock * ranks + rank;
    MPI_Bcast(from, kBlock, MPI_INT, 0, MPI_COMM_WORLD);
    return wrong | (from[0] != 0);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int wrong = dlsym(RTLD_DEFAULT, "coco_version") == NULL;
    if (wrong) fprintf(stderr, "app: libcoco is not loaded\n");
    int* to = malloc(sizeof(int) * kBlock * (size_t)ranks);
    int* from = malloc(sizeof(int) * kBlock * (size_t)ranks);
    for (int call = 0; call < kCalls && !wrong; ++call) wrong = exchange(to, from, rank, ranks);
    free(to);
    free(from);
    MPI_Finalize();
    return wrong;
}
