/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that bounds its own address space, before MPI_Init or after it: bounded GIB before|after. Threads, mappings and
   children go on within the limit, and so do collectives, also where heaps grow later. */
#define _GNU_SOURCE

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"

static void bound(const char* gib) {
    const struct rlimit limit = {strtoul(gib, NULL, 10) << 30, RLIM_INFINITY};
    expect(setrlimit(RLIMIT_AS, &limit), 0, "setrlimit");
}

static void* use_stack(void* argument) {
    char room[1000];
    memset(room, 1, sizeof room);
    return room[999] == 1 ? argument : NULL;
}

static void use_system(void) {
    pthread_t thread;
    expect(pthread_create(&thread, NULL, use_stack, NULL), 0, "pthread_create");
    pthread_join(thread, NULL);
    const size_t bytes = (size_t)512 << 20;
    void* mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(mapped == MAP_FAILED, 0, "mmap");
    pid_t child = fork();
    if (child == 0) {
        void* block = malloc(100000);
        _exit(block == NULL);
    }
    int status = -1;
    expect(waitpid(child, &status, 0), child, "waitpid");
    expect(status, 0, "the child");
    munmap(mapped, bytes);
}

/* 100 MB in small blocks, of which each is sent once. */
static void grow(void) {
    enum { BLOCKS = 1000, BYTES = 100000 };
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char** blocks = malloc(BLOCKS * sizeof *blocks);
    char* to = malloc((size_t)BYTES * (size_t)size);
    for (int i = 0; i < BLOCKS; ++i) {
        blocks[i] = malloc(BYTES);
        memset(blocks[i], rank + i, BYTES);
        MPI_Allgather(blocks[i], BYTES, MPI_BYTE, to, BYTES, MPI_BYTE, MPI_COMM_WORLD);
        for (int r = 0; r < size; ++r) expect(to[(size_t)r * BYTES + BYTES - 1], (char)(r + i), "allgather");
    }
    for (int i = 0; i < BLOCKS; ++i) free(blocks[i]);
    free(blocks);
    free(to);
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    if (strcmp(argv[2], "before") == 0) bound(argv[1]);
    MPI_Init(&argc, &argv);
    use_collectives();
    if (strcmp(argv[2], "after") == 0) bound(argv[1]);
    use_system();
    grow();
    use_system();
    MPI_Finalize();
    return wrong != 0;
}
