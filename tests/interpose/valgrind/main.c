// SPDX-License-Identifier: BSD-3-Clause
// Collectives of small and large blocks, compared; then this process, valgrind included, must never have
// taken more than so much memory. usage: main MOST_MIB
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static long peak_kib(void) {
    FILE* status = fopen("/proc/self/status", "r");
    char line[256];
    long kib = -1;
    while (status != NULL && fgets(line, sizeof line, status) != NULL) sscanf(line, "VmHWM: %ld", &kib);
    if (status != NULL) fclose(status);
    return kib;
}

static int wrong(int each) {
    int rank, ranks, faults = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int all = each * ranks;
    int *out = malloc((size_t)all * sizeof(int)), *in = calloc((size_t)all, sizeof(int));
    for (int i = 0; i < all; ++i) out[i] = rank * 1000003 + i;
    MPI_Alltoall(out, each, MPI_INT, in, each, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < all; ++i) faults += in[i] != i / each * 1000003 + rank * each + i % each;
    MPI_Allgather(out, each, MPI_INT, in, each, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < all; ++i) faults += in[i] != i / each * 1000003 + i % each;
    MPI_Bcast(out, all, MPI_INT, ranks - 1, MPI_COMM_WORLD);
    for (int i = 0; i < all; ++i) faults += out[i] != (ranks - 1) * 1000003 + i;
    free(in);
    free(out);
    return faults;
}

int main(int count, char** arguments) {
    MPI_Init(&count, &arguments);
    int faults = 0;
    for (int turn = 0; turn < 3; ++turn)
        for (int each = 1; each <= 100000; each *= 100) faults += wrong(each);
    void* memory = NULL;
    MPI_Alloc_mem(1 << 20, MPI_INFO_NULL, &memory);
    MPI_Free_mem(memory);
    MPI_Finalize();
    long most_kib = atol(arguments[1]) * 1024, kib = peak_kib();
    if (faults != 0) fprintf(stderr, "%d wrong numbers\n", faults);
    if (kib > most_kib) fprintf(stderr, "%ld KiB of memory, more than %ld\n", kib, most_kib);
    return faults != 0 || kib < 0 || kib > most_kib;
}
