/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls every function of the strange library, by the names that a program calls. */
#include <stdio.h>

int strange_calls(void);
int run(void);

static int failures, calls;

static void expect(const char* name, int answer, int wanted) {
    ++calls;
    if (answer == wanted && strange_calls() == calls) return;
    ++failures;
    fprintf(stderr, "FAILED %s: %d instead of %d, %d calls of %d reached the library\n", name, answer, wanted,
            strange_calls(), calls);
}

/* The arguments are nobody's: who looked at them would crash. */
#define CALL(name, number)                                         \
    {                                                              \
        int MPI_##name(void*, void*, void*);                       \
        int PMPI_##name(void*, void*, void*);                      \
        void* bad = (void*)8;                                      \
        expect("MPI_" #name, MPI_##name(bad, bad, bad), number);   \
        expect("PMPI_" #name, PMPI_##name(bad, bad, bad), number); \
    }

int run(void) {
    CALL(Init, 101)
    CALL(Init_thread, 102)
    CALL(Alltoall, 104)
    CALL(Neighbor_alltoallw, 105)
    CALL(Bcast_c, 106)
    CALL(Comm_free, 107)
    CALL(Cart_create, 108)
    CALL(Alloc_mem, 109)
    CALL(Free_mem, 110)
    CALL(Session_init, 111)
    CALL(Finalize, 103)
    printf("%d calls, %d failures\n", calls, failures);
    return failures != 0;
}
