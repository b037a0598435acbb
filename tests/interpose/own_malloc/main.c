// SPDX-License-Identifier: BSD-3-Clause
// A program with an allocator of its own, or of a library: blocks go from one name of the family to another,
// through libc and through a plugin, and collectives of all sizes give what they should. usage: main PLUGIN
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "check.h"

// Names that only one of the allocators has.
extern void* mallocx(size_t bytes, int flags) __attribute__((weak));
extern void sdallocx(void* block, size_t bytes, int flags) __attribute__((weak));
extern void* mi_malloc(size_t bytes) __attribute__((weak));
extern void mi_free(void* block) __attribute__((weak));
extern void* tc_malloc(size_t bytes) __attribute__((weak));
extern void tc_free(void* block) __attribute__((weak));

static void check_special_names(void) {
    for (size_t bytes = 1; bytes < 100000; bytes = bytes * 3 + 1) {
        if (mallocx != NULL) free(mallocx(bytes, 0));
        if (sdallocx != NULL) sdallocx(malloc(bytes), bytes, 0);
        if (mi_malloc != NULL) free(mi_malloc(bytes));
        if (mi_free != NULL) mi_free(calloc(1, bytes));
        if (tc_malloc != NULL) free(tc_malloc(bytes));
        if (tc_free != NULL) tc_free(malloc(bytes));
    }
}

static void check_family(void) {
    char* text = strdup("text of libc");
    text = realloc(text, 5000);
    CHECK(strcmp(text, "text of libc") == 0);
    text = reallocarray(text, 100, 100);
    CHECK(strcmp(text, "text of libc") == 0);
    free(text);
    int* numbers = reallocarray(NULL, 1000, sizeof(int));
    numbers[999] = 5;
    numbers = realloc(numbers, 100000);
    CHECK(numbers[999] == 5);
    free(numbers);
    char* printed = NULL;
    CHECK(asprintf(&printed, "%d and %s", 17, "more") == 11);
    free(printed);
    char* line = NULL;
    size_t room = 0;
    FILE* file = tmpfile();
    fputs("a line of a file\n", file);
    rewind(file);
    CHECK(getline(&line, &room, file) == 17);
    fclose(file);
    free(line);
    free(malloc(0));
    free(NULL);
}

#ifndef MINIMUM
// No larger alignments: some versions of mimalloc fail them.
static void check_aligned(void) {
    for (size_t alignment = 16; alignment <= 128; alignment *= 2) {
        void* block = NULL;
        CHECK(posix_memalign(&block, alignment, 100) == 0 && (uintptr_t)block % alignment == 0);
        free(block);
        block = aligned_alloc(alignment, alignment);
        CHECK(block != NULL && (uintptr_t)block % alignment == 0);
        free(block);
    }
}
#else
// Functions that such a program has to leave alone: glibc has them for its own blocks.
static void check_aligned(void) {}
#endif

static void* work(void* seed) {
    for (int i = 0; i < 2000; ++i) {
        size_t bytes = (size_t)(i * 37 + (int)(intptr_t)seed) % 3000 + 1;
        char* block = malloc(bytes);
        block[0] = block[bytes - 1] = (char)i;
        block = realloc(block, bytes * 2);
        CHECK(block[0] == (char)i && block[bytes - 1] == (char)i);
        free(block);
    }
    return calloc(10, 10);
}

static void check_threads(void) {
    pthread_t threads[3];
    for (intptr_t t = 0; t < 3; ++t) pthread_create(&threads[t], NULL, work, (void*)t);
    for (int t = 0; t < 3; ++t) {
        void* made = NULL;
        pthread_join(threads[t], &made);
        free(made);
    }
}

static void check_plugin(const char* path) {
    void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(plugin != NULL);
    void* (*make)(size_t) = (void* (*)(size_t))dlsym(plugin, "plugin_make");
    void (*drop)(void*) = (void (*)(void*))dlsym(plugin, "plugin_free");
    void* (*grow)(void*, size_t) = (void* (*)(void*, size_t))dlsym(plugin, "plugin_grow");
    free(make(100));
    drop(malloc(100));
    drop(grow(malloc(100), 10000));
    drop(reallocarray(make(100), 30, 30));
    CHECK(dlclose(plugin) == 0);
}

static int rank, ranks;

static void check_collectives(size_t each) {
    size_t all = each * (size_t)ranks;
    int *out = malloc(all * sizeof(int)), *in = calloc(all, sizeof(int));
    for (size_t i = 0; i < all; ++i) out[i] = rank * 1000003 + (int)i;
    MPI_Alltoall(out, (int)each, MPI_INT, in, (int)each, MPI_INT, MPI_COMM_WORLD);
    for (size_t i = 0; i < all; ++i)
        CHECK(in[i] == (int)(i / each) * 1000003 + rank * (int)each + (int)(i % each));
    MPI_Allgather(out, (int)each, MPI_INT, in, (int)each, MPI_INT, MPI_COMM_WORLD);
    for (size_t i = 0; i < all; ++i) CHECK(in[i] == (int)(i / each) * 1000003 + (int)(i % each));
    MPI_Bcast(out, (int)all, MPI_INT, ranks - 1, MPI_COMM_WORLD);
    for (size_t i = 0; i < all; ++i) CHECK(out[i] == (ranks - 1) * 1000003 + (int)i);
    int *counts = malloc((size_t)ranks * sizeof(int)), *starts = malloc((size_t)ranks * sizeof(int));
    for (int r = 0; r < ranks; ++r) {
        counts[r] = (int)each;
        starts[r] = r * (int)each;
    }
    memset(in, 0, all * sizeof(int));
    MPI_Alltoallv(out, counts, starts, MPI_INT, in, counts, starts, MPI_INT, MPI_COMM_WORLD);
    for (size_t i = 0; i < all; ++i)
        CHECK(in[i] == (ranks - 1) * 1000003 + rank * (int)each + (int)(i % each));
    free(starts);
    free(counts);
    free(in);
    free(out);
}

static void check_memory_of_mpi(void) {
    int* memory = NULL;
    CHECK(MPI_Alloc_mem(100000, MPI_INFO_NULL, &memory) == MPI_SUCCESS);
    memory[24999] = 1;
    CHECK(MPI_Free_mem(memory) == MPI_SUCCESS);
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    check_family();
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    check_family();
    check_aligned();
    check_special_names();
    check_threads();
    check_plugin(arguments[1]);
    check_memory_of_mpi();
    for (int turn = 0; turn < 3; ++turn)
        for (size_t each = 1; each <= 300000; each = each * 7 + 3) check_collectives(each);
    MPI_Finalize();
    if (rank == 0) printf("all is well\n");
    return 0;
}
