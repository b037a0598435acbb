/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPI library has no large-count functions and no sessions. A program that asks for them finds libcoco's doors: those
   serve it by the int functions, refuse what fits into none, and say that there are no sessions. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 64 };

static int rank, size, failures;
static int sent[MOST], came[MOST];

typedef int Plain(const void*, MPI_Count, MPI_Datatype, void*, MPI_Count, MPI_Datatype, MPI_Comm);
typedef int Vector(const void*, const MPI_Count*, const MPI_Aint*, MPI_Datatype, void*, const MPI_Count*,
                   const MPI_Aint*, MPI_Datatype, MPI_Comm);
typedef int Typed(const void*, const MPI_Count*, const MPI_Aint*, const MPI_Datatype*, void*,
                  const MPI_Count*, const MPI_Aint*, const MPI_Datatype*, MPI_Comm);
typedef int Gatherv(const void*, MPI_Count, MPI_Datatype, void*, const MPI_Count*, const MPI_Aint*,
                    MPI_Datatype, MPI_Comm);
typedef int Bcast(void*, MPI_Count, MPI_Datatype, int, MPI_Comm);

static void expect(const char* name, int code, int wanted_code, int word, int wanted_word) {
    if (code == wanted_code && word == wanted_word) return;
    ++failures;
    fprintf(stderr, "FAILED %s: code %d, %d instead of %d\n", name, code, word, wanted_word);
}

static void* ask(const char* name) {
    void* found = dlsym(RTLD_DEFAULT, name);
    if (found == NULL) ++failures, fprintf(stderr, "FAILED: no %s\n", name);
    return found;
}

static void reset(void) {
    memset(came, -1, sizeof came);
    for (int i = 0; i < MOST; ++i) sent[i] = 100 * rank + i;
}

/* Of all ranks, or in `ring` of the two neighbours: who sends the last block, and which of its words that is. */
static void exchange(const char* prefix, MPI_Comm comm, int blocks, int last, int word) {
    char name[64];
    MPI_Count counts[MOST];
    MPI_Aint at[MOST], bytes_at[MOST];
    MPI_Datatype types[MOST];
    for (int i = 0; i < blocks; ++i) counts[i] = 1, at[i] = i, bytes_at[i] = 4 * i, types[i] = MPI_INT;
    const char* forms[] = {"alltoall_c", "alltoallv_c", "alltoallw_c", "allgather_c", "allgatherv_c"};
    for (int form = 0; form < 5; ++form) {
        snprintf(name, sizeof name, "%s%s", prefix, forms[form]);
        if (prefix[4] == 0) name[4] = 'A';
        void* f = ask(name);
        reset();
        if (f == NULL) continue;
        int code = form == 0   ? ((Plain*)f)(sent, 1, MPI_INT, came, 1, MPI_INT, comm)
                   : form == 1 ? ((Vector*)f)(sent, counts, at, MPI_INT, came, counts, at, MPI_INT, comm)
                   : form == 2
                       ? ((Typed*)f)(sent, counts, bytes_at, types, came, counts, bytes_at, types, comm)
                   : form == 3 ? ((Plain*)f)(sent, 1, MPI_INT, came, 1, MPI_INT, comm)
                               : ((Gatherv*)f)(sent, 1, MPI_INT, came, counts, at, MPI_INT, comm);
        expect(name, code, MPI_SUCCESS, came[blocks - 1], 100 * last + (form < 3 ? word : 0));
        expect(name, code, MPI_SUCCESS, came[blocks], -1);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    exchange("MPI_", MPI_COMM_WORLD, size, size - 1, rank);
    MPI_Comm ring;
    int periodic = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    /* From the right neighbour, for whom this rank is the left one. */
    exchange("MPI_Neighbor_", ring, 2, (rank + 1) % size, 0);
    Bcast* bcast = (Bcast*)ask("MPI_Bcast_c");
    reset();
    const int code = bcast(sent, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
    expect("MPI_Bcast_c", code, MPI_SUCCESS, sent[0], 100 * (size - 1));
    Plain* alltoall = (Plain*)ask("MPI_Alltoall_c");
    const MPI_Count large = (MPI_Count)1 << 32;
    expect("a large count", alltoall(sent, large, MPI_BYTE, came, large, MPI_BYTE, MPI_COMM_WORLD),
           MPI_ERR_COUNT, 0, 0);
    int (*session)(MPI_Info, MPI_Errhandler, void*) =
        (int (*)(MPI_Info, MPI_Errhandler, void*))ask("MPI_Session_init");
    void* made = NULL;
    expect("MPI_Session_init", session(MPI_INFO_NULL, MPI_ERRORS_RETURN, &made), MPI_ERR_OTHER, 0, 0);
    MPI_Finalize();
    return failures != 0;
}
