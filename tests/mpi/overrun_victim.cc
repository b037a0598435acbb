// SPDX-License-Identifier: BSD-3-Clause
//
// A wrong program whose receive buffer on rank 0 is a byte too short: a libcoco that was built with the
// address sanitizer must say so where it writes that byte. Else the sanitized runs would prove nothing. (One
// rank is wrong, as MPICH's launcher was seen to hang where two ranks ended at the same moment.)
#include <mpi.h>

#include <vector>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int ranks = 0, rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int block_bytes = 3000;
    std::vector<char> send(ranks * block_bytes), recv(ranks * block_bytes);
    std::vector<char> too_short(recv.size() - 1);
    for (int call = 0; call < 20; ++call) {
        char* into = call == 19 && rank == 0 ? too_short.data() : recv.data();
        MPI_Alltoall(send.data(), block_bytes, MPI_BYTE, into, block_bytes, MPI_BYTE, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
