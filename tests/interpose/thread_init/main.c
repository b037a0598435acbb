/* SPDX-License-Identifier: BSD-3-Clause */
/* Initialised by MPI_Init_thread, at each level (the argument). */
#include "../check.h"

int main(int argc, char** argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, argc > 1 ? atoi(argv[1]) : MPI_THREAD_SINGLE, &provided);
    use_collectives();
    MPI_Finalize();
    return wrong != 0;
}
