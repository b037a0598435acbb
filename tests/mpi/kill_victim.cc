// SPDX-License-Identifier: BSD-3-Clause
//
// A job whose last rank dies by SIGKILL in the middle of a series of collectives. The launcher must end the
// job: ranks that wait in a collective for the dead one must be killable. With any argument nobody dies by
// itself: rank 0 says `looping` when that can begin.
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include "call.h"

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    for (int i = 0;; ++i) {
        test::warm_up(MPI_COMM_WORLD);
        if (i == 20 && argc > 1 && test::world_rank() == 0) std::puts("looping"), std::fflush(stdout);
        if (i == 20 && argc == 1 && test::world_rank() == test::world_size() - 1) kill(getpid(), SIGKILL);
    }
}
