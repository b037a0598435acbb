/* SPDX-License-Identifier: BSD-3-Clause */
/* Every name that a Fortran compiler may make of MPI_X and PMPI_X (no, one or two underscores, capitals),
 * called in the MPI's Fortran library (the argument) as Fortran would: all by reference. All must end in our
 * doors: each collective is called ROUNDS * 8 times. */
#include <ctype.h>
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 3

typedef MPI_Fint Int;
typedef void Plain(void*, Int*, Int*, void*, Int*, Int*, Int*, Int*);
typedef void Sized(void*, Int*, Int*, Int*, void*, Int*, Int*, Int*, Int*, Int*);
typedef void Gatherv(void*, Int*, Int*, void*, Int*, Int*, Int*, Int*, Int*);
typedef void Bcast(void*, Int*, Int*, Int*, Int*, Int*);

static void* library;
static int rank, size, wrong;
/* In which every rank is every rank's neighbour. */
static MPI_Comm graph;

/* form: 0 to 2 underscores behind small letters; 3: capitals. */
static void* named(const char* prefix, const char* name, int form) {
    char text[64];
    snprintf(text, sizeof text, "%s_%s%s", prefix, name, form == 1 ? "_" : form == 2 ? "__" : "");
    for (char* c = text; form == 3 && *c; ++c) *c = (char)toupper(*c);
    void* found = dlsym(library, text);
    if (found == NULL && wrong++ < 100) fprintf(stderr, "no %s: %s\n", text, dlerror());
    return found;
}

static void expect(const Int* recv, int step, int offset, const char* what, int form) {
    for (int r = 0; r < size; ++r)
        if (recv[r] != r * step + offset && wrong++ < 10)
            fprintf(stderr, "%s, form %d: %d instead of %d\n", what, form, (int)recv[r], r * step + offset);
}

/* The same blocks among neighbours: as the plain forms, but for w's displacements, which are addresses. */
typedef void Addressed(void*, Int*, MPI_Aint*, Int*, void*, Int*, MPI_Aint*, Int*, Int*, Int*);

static void call_neighbors(const char* prefix, int form) {
    Int comm = MPI_Comm_c2f(graph), type = MPI_Type_c2f(MPI_INT), one = 1, code = -1;
    Int from[16], to[16], ones[16], places[16], types[16];
    MPI_Aint bytes[16];
    for (int r = 0; r < size; ++r) {
        from[r] = rank * 100 + r;
        ones[r] = 1;
        places[r] = r;
        bytes[r] = r * (int)sizeof(Int);
        types[r] = type;
    }
    void* f;
    memset(to, -1, sizeof to);
    if ((f = named(prefix, "neighbor_alltoall", form))) {
        ((Plain*)f)(from, &one, &type, to, &one, &type, &comm, &code);
        expect(to, 100, rank, "neighbor_alltoall", form);
    }
    memset(to, -1, sizeof to);
    if ((f = named(prefix, "neighbor_alltoallv", form))) {
        ((Sized*)f)(from, ones, places, &type, to, ones, places, &type, &comm, &code);
        expect(to, 100, rank, "neighbor_alltoallv", form);
    }
    memset(to, -1, sizeof to);
    if ((f = named(prefix, "neighbor_alltoallw", form))) {
        ((Addressed*)f)(from, ones, bytes, types, to, ones, bytes, types, &comm, &code);
        expect(to, 100, rank, "neighbor_alltoallw", form);
    }
    memset(to, -1, sizeof to);
    if ((f = named(prefix, "neighbor_allgather", form))) {
        ((Plain*)f)(from, &one, &type, to, &one, &type, &comm, &code);
        expect(to, 100, 0, "neighbor_allgather", form);
    }
    memset(to, -1, sizeof to);
    if ((f = named(prefix, "neighbor_allgatherv", form))) {
        ((Gatherv*)f)(from, &one, &type, to, ones, places, &type, &comm, &code);
        expect(to, 100, 0, "neighbor_allgatherv", form);
    }
}

static void call_all(const char* prefix, int form) {
    Int comm = MPI_Comm_c2f(MPI_COMM_WORLD), type = MPI_Type_c2f(MPI_INT), one = 1, code = -1,
        root = size - 1;
    Int from[16], to[16], ones[16], places[16], bytes[16], types[16];
    for (int r = 0; r < size; ++r) {
        from[r] = rank * 100 + r;
        ones[r] = 1;
        places[r] = r;
        bytes[r] = r * (int)sizeof(Int);
        types[r] = type;
    }
    void* f;
    if ((f = named(prefix, "alltoall", form))) {
        ((Plain*)f)(from, &one, &type, to, &one, &type, &comm, &code);
        expect(to, 100, rank, "alltoall", form);
    }
    if ((f = named(prefix, "alltoallv", form))) {
        memset(to, -1, sizeof to);
        ((Sized*)f)(from, ones, places, &type, to, ones, places, &type, &comm, &code);
        expect(to, 100, rank, "alltoallv", form);
    }
    if ((f = named(prefix, "alltoallw", form))) {
        memset(to, -1, sizeof to);
        ((Sized*)f)(from, ones, bytes, types, to, ones, bytes, types, &comm, &code);
        expect(to, 100, rank, "alltoallw", form);
    }
    if ((f = named(prefix, "allgather", form))) {
        ((Plain*)f)(from, &one, &type, to, &one, &type, &comm, &code);
        expect(to, 100, 0, "allgather", form);
    }
    if ((f = named(prefix, "allgatherv", form))) {
        memset(to, -1, sizeof to);
        ((Gatherv*)f)(from, &one, &type, to, ones, places, &type, &comm, &code);
        expect(to, 100, 0, "allgatherv", form);
    }
    if ((f = named(prefix, "bcast", form))) {
        Int count = size;
        ((Bcast*)f)(from, &count, &type, &root, &comm, &code);
        expect(from, 1, root * 100, "bcast", form);
    }
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int all[16];
    for (int r = 0; r < size; ++r) all[r] = r;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, size, all, all, size, all, all, MPI_INFO_NULL, 0, &graph);
    for (int i = 0; i < 39; ++i) { /* calls on neighbours are ours from the 40th on */
        int mine = rank, theirs[16];
        MPI_Neighbor_allgather(&mine, 1, MPI_INT, theirs, 1, MPI_INT, graph);
    }
    library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (library == NULL) fprintf(stderr, "%s\n", dlerror());
    for (int round = 0; library != NULL && round < ROUNDS; ++round)
        for (int form = 0; form < 4; ++form) {
            call_all("mpi", form);
            call_all("pmpi", form);
            call_neighbors("mpi", form);
            call_neighbors("pmpi", form);
        }
    MPI_Comm_free(&graph);
    MPI_Finalize();
    return library == NULL ? 77 : wrong != 0;
}
