/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI library of no family: every call is counted and answered by a number of its own. */
#include <string.h>

static int calls;

int strange_calls(void) { return calls; }

#define BOTH(name, number)  \
    int PMPI_##name(void);  \
    int MPI_##name(void);   \
    int PMPI_##name(void) { \
        ++calls;            \
        return number;      \
    }                       \
    int MPI_##name(void) { return PMPI_##name(); }

BOTH(Init, 101)
BOTH(Init_thread, 102)
BOTH(Finalize, 103)
BOTH(Alltoall, 104)
BOTH(Neighbor_alltoallw, 105)
BOTH(Bcast_c, 106)
BOTH(Comm_free, 107)
BOTH(Cart_create, 108)
BOTH(Alloc_mem, 109)
BOTH(Free_mem, 110)
BOTH(Session_init, 111)
