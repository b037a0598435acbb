/* SPDX-License-Identifier: BSD-3-Clause */
/* No MPI_Init at all: a session, a communicator from its group, collectives on it. With the word "world" MPI_Init comes
 * later, and collectives on MPI_COMM_WORLD and on the session's communicator again. Exit 77 where MPI has no sessions. */
#include "../check.h"

#include <string.h>

#if MPI_VERSION >= 4
int main(int argc, char** argv) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS) return 77;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "situation", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    use_alltoall(comm, CALLS);
    if (argc > 1 && strcmp(argv[1], "world") == 0) {
        MPI_Init(&argc, &argv);
        use_alltoall(MPI_COMM_WORLD, CALLS);
        use_alltoall(comm, CALLS);
        MPI_Finalize();
    }
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    return wrong != 0;
}
#else
int main(void) { return 77; }
#endif
