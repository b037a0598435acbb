/* SPDX-License-Identifier: BSD-3-Clause */
/* The plainest program: MPI_Init, collectives, MPI_Finalize. Also what is linked with -lcoco. */
#include "../check.h"

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    use_collectives();
    MPI_Finalize();
    return wrong != 0;
}
