/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcasts from buffers on the heap and off it: the root's decides how each travels, and the report must
   tell what ran. Run with COCO_BCAST=direct: 20 calls are direct, 20 cannot be and go in segments, 20 are so
   small that they travel at once. */
#include "../check.h"

#define LARGE (1 << 18)
#define SHARED (1 << 16) /* from malloc, larger ones are private until they are seen again */

static int fixed[LARGE];

static void bcast(int* buffer, int ints, int call) {
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < ints; ++i) buffer[i] = rank * 1000 + i % 1000 + call;
    MPI_Bcast(buffer, ints, MPI_INT, call % size, MPI_COMM_WORLD);
    for (int i = 0; i < ints; ++i) expect(buffer[i], call % size * 1000 + i % 1000 + call, "bcast");
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int* heap = malloc(SHARED * sizeof *heap);
    for (int call = 0; call < CALLS; ++call) {
        bcast(heap, SHARED, call);
        bcast(fixed, LARGE, call);
        bcast(fixed, 16, call);
    }
    free(heap);
    MPI_Finalize();
    return wrong != 0;
}
