/* SPDX-License-Identifier: BSD-3-Clause */
/* No MPI at link time: the program opens the MPI library (the argument) by dlopen in a local scope and asks
   for the functions by name. MPI's handles are opaque here, so the calls are of the few that need none but
   from dlsym. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void* library;

static void* function(const char* name) {
    void* found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "no %s: %s\n", name, dlerror());
        exit(1);
    }
    return found;
}

int main(int argc, char** argv) {
    library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) return 1;
    int (*init)(int*, char***) = (int (*)(int*, char***))function("MPI_Init");
    int (*finalize)(void) = (int (*)(void))function("MPI_Finalize");
    int (*barrier)(MPI_Comm) = (int (*)(MPI_Comm))function("MPI_Barrier");
#ifdef OPEN_MPI
    MPI_Comm world = (MPI_Comm)function("ompi_mpi_comm_world");
#else
    MPI_Comm world = MPI_COMM_WORLD;
#endif
    return init(&argc, &argv) || barrier(world) || finalize();
}
