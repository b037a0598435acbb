/* SPDX-License-Identifier: BSD-3-Clause */
/* Switched off, nothing of libcoco's wakes: bcasts on one rank, in which the MPI library does nothing, leave the process's memory map as it
   was. (The allocator, once it is asked for anything, maps memory.) */
#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../check.h"

#define MAP_BYTES (1 << 20)

static size_t read_map(char* text) {
    int file = open("/proc/self/maps", O_RDONLY);
    size_t bytes = 0;
    ssize_t more;
    while ((more = read(file, text + bytes, MAP_BYTES - bytes)) > 0) bytes += (size_t)more;
    close(file);
    return bytes;
}

int main(int argc, char** argv) {
    static char before[MAP_BYTES], after[MAP_BYTES];
    int data = 0;
    MPI_Init(&argc, &argv);
    /* Threads that the MPI library has just started map memory for a while. */
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    size_t before_bytes = read_map(before);
    for (int call = 0; call < 100; ++call) MPI_Bcast(&data, 1, MPI_INT, 0, MPI_COMM_WORLD);
    size_t after_bytes = read_map(after);
    if (before_bytes != after_bytes || memcmp(before, after, after_bytes) != 0 || before_bytes == 0) {
        fprintf(stderr, "the map has changed:\n%.*s\nbefore:\n%.*s\n", (int)after_bytes, after,
                (int)before_bytes, before);
        ++wrong;
    }
    MPI_Finalize();
    return wrong != 0;
}
