// SPDX-License-Identifier: BSD-3-Clause
// A program that makes the same calls again and again. usage: steady TURNS [session|late|bounded] With
// "session" a session is open before MPI_Init, where the MPI library has sessions; with "late" MPI ends when
// the program does, in an exit handler that is older than MPI_Init. With "bounded" the program writes no
// files any more when MPI ends.
#include <mpi.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#if MPI_VERSION >= 4
MPI_Session g_session = MPI_SESSION_NULL;
#endif

void open_session() {
#if MPI_VERSION >= 4
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &g_session);
#endif
}

// The session's end is MPI's, which waits for all ranks: launchers kill the others where one ends before.
void finalize() {
    MPI_Finalize();
#if MPI_VERSION >= 4
    if (g_session != MPI_SESSION_NULL) MPI_Session_finalize(&g_session);
#endif
}

int main(int count, char** arguments) {
    const std::string_view how = count > 2 ? arguments[2] : "";
    if (how == "session") open_session();
    if (how == "late") std::atexit(finalize);
    MPI_Init(&count, &arguments);
    const int turns = count > 1 ? std::atoi(arguments[1]) : 0;
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::vector<int> out(static_cast<std::size_t>(ranks)), in(out.size());
    int wrong = turns <= 0;
    for (int turn = 0; turn < turns; ++turn) {
        for (int r = 0; r < ranks; ++r) out[static_cast<std::size_t>(r)] = turn + 100 * rank + 10'000 * r;
        MPI_Alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, MPI_COMM_WORLD);
        for (int r = 0; r < ranks; ++r)
            wrong |= in[static_cast<std::size_t>(r)] != turn + 100 * r + 10'000 * rank;
    }
    if (wrong) std::fprintf(stderr, "rank %d: wrong data, or no turns\n", rank);
    const rlimit none{0, RLIM_INFINITY};
    if (how == "bounded" && setrlimit(RLIMIT_FSIZE, &none) != 0) wrong = 1;
    if (how != "late") finalize();
    return wrong;
}
