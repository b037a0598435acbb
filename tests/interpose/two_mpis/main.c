/* SPDX-License-Identifier: BSD-3-Clause */
/* A second MPI library comes into the process, `before` MPI_Init or `after` it and before a session is opened, which is
   when libcoco looks again: the program goes on as it would without libcoco. usage: two_mpis before|after LIBRARY */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int is_right(void) {
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int send[64], recv[64], good = 1;
    for (int turn = 0; turn < 20; ++turn) {
        for (int i = 0; i < size; ++i) send[i] = 100 * rank + i + turn;
        MPI_Alltoall(send, 1, MPI_INT, recv, 1, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < size; ++i) good = good && recv[i] == 100 * i + rank + turn;
    }
    return good;
}

static int bring(const char* library) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) fprintf(stderr, "%s\n", dlerror());
    return handle != NULL;
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const int before = strcmp(argv[1], "before") == 0;
    int provided, good = !before || bring(argv[2]);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
    if (!before) {
        good = is_right() && good && bring(argv[2]);
#if MPI_VERSION >= 4
        MPI_Session session;
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
        MPI_Session_finalize(&session);
#endif
    }
    good = is_right() && good;
    MPI_Finalize();
    return good ? 0 : 1;
}
