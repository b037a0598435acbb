/* SPDX-License-Identifier: BSD-3-Clause */
/* No MPI_Init at all: a session, a communicator from its group, collectives on it. Exit 77 where MPI has
 * none. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#if MPI_VERSION >= 4
static int use(MPI_Comm comm) {
    int rank, size, wrong = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int* from = malloc(sizeof(int) * (size_t)size);
    int* to = malloc(sizeof(int) * (size_t)size);
    for (int call = 0; call < 20; ++call) {
        for (int i = 0; i < size; ++i) from[i] = rank * 100 + i + call;
        MPI_Alltoall(from, 1, MPI_INT, to, 1, MPI_INT, comm);
        for (int i = 0; i < size; ++i) wrong += to[i] != i * 100 + rank + call;
    }
    free(from);
    free(to);
    return wrong;
}

int main(void) {
    int wrong;
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS) return 77;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "situation", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    wrong = use(comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    if (wrong) fprintf(stderr, "%d wrong results\n", wrong);
    return wrong != 0;
}
#else
int main(void) { return 77; }
#endif
