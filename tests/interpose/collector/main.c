/* SPDX-License-Identifier: BSD-3-Clause */
/* A program whose memory a conservative collector manages: buffers that the program has dropped are not kept for libcoco,
   and the collector has nothing to warn of. */
#include <gc.h>
#include <string.h>

#include "../check.h"

enum { BLOCK = 2000000 };

static int warnings = 0;
static void count_warning(char* text, GC_word word) {
    fprintf(stderr, text, word);
    ++warnings;
}

/* Gives the collector small objects to look through. */
static void make_list(void) {
    void** list = NULL;
    for (int i = 0; i < 10000; ++i) {
        void** entry = GC_MALLOC(32);
        entry[0] = (void*)list;
        list = entry;
    }
}

/* Buffers that are used often enough to be looked at closely. */
static void exchange(int turn) {
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char* from = GC_MALLOC_ATOMIC((size_t)BLOCK * (size_t)size);
    char* to = GC_MALLOC_ATOMIC((size_t)BLOCK * (size_t)size);
    for (int call = 0; call < CALLS; ++call) {
        memset(from, rank + turn + call, (size_t)BLOCK * (size_t)size);
        MPI_Alltoall(from, BLOCK, MPI_BYTE, to, BLOCK, MPI_BYTE, MPI_COMM_WORLD);
        for (int r = 0; r < size; ++r)
            expect(to[(size_t)r * BLOCK + BLOCK - 1], (char)(r + turn + call), "alltoall");
    }
}

int main(int argc, char** argv) {
    enum { TURNS = 30 };
    GC_INIT();
    GC_set_warn_proc(count_warning);
    MPI_Init(&argc, &argv);
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int turn = 0; turn < TURNS; ++turn) {
        exchange(turn);
        make_list();
    }
    expect(warnings, 0, "warnings");
    expect(GC_get_heap_size() > 10 * (size_t)BLOCK * (size_t)size, 0,
           "more than five pairs of buffers are kept");
    MPI_Finalize();
    return wrong != 0;
}
