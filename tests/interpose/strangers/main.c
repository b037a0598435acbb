// SPDX-License-Identifier: BSD-3-Clause
//
// A rank that has all that ranks have (a heap that its mates map, large blocks that they read), says so by a
// file ready.RANK in the folder that its argument names, and goes on to its end when there is a file `go`.
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kTurns = 200, kLargeTurns = 8, kLargeBytes = 4 << 20 };

static void exchange(int ranks, int bytes, int turns) {
    char* out = malloc((size_t)ranks * (size_t)bytes);
    char* in = malloc((size_t)ranks * (size_t)bytes);
    memset(out, 's', (size_t)ranks * (size_t)bytes);
    for (int turn = 0; turn < turns; ++turn)
        MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
    free(out);
    free(in);
}

static void path_of(char* path, size_t bytes, const char* folder, const char* what, int rank) {
    if (rank < 0)
        snprintf(path, bytes, "%s/%s", folder, what);
    else
        snprintf(path, bytes, "%s/%s.%d", folder, what, rank);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc < 2) return 2;
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    exchange(ranks, 8, kTurns);
    exchange(ranks, kLargeBytes, kLargeTurns);

    char path[4096];
    path_of(path, sizeof path, argv[1], "ready", rank);
    FILE* ready = fopen(path, "w");
    if (ready == NULL) return 3;
    fprintf(ready, "%d", (int)getpid());
    fclose(ready);
    path_of(path, sizeof path, argv[1], "go", -1);
    while (access(path, F_OK) != 0) usleep(10000);
    MPI_Finalize();
    return 0;
}
