/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that a rank starts inherits the launcher's environment and the preload, and is no rank all the same: it gets no
 * shared heap, however it is started. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char* const kHeap = "/memfd:coco-heap";

/* How many lines of the file name the heap; -1 if it cannot be read. */
static int count_lines(FILE* maps) {
    char line[512];
    int lines = 0;
    if (maps == NULL) return -1;
    while (fgets(line, sizeof line, maps) != NULL) lines += strstr(line, kHeap) != NULL;
    return lines;
}

static int heaps_of_popen(void) {
    FILE* maps = popen("cat /proc/self/maps", "r");
    int lines = count_lines(maps);
    return pclose(maps) == 0 ? lines : -1;
}

/* Of a process that has another rank's number: a job that the rank starts. */
static int heaps_of_other_job(void) {
    FILE* maps = popen("PMI_RANK=17 PMIX_RANK=17 OMPI_COMM_WORLD_RANK=17 cat /proc/self/maps", "r");
    int lines = count_lines(maps);
    return pclose(maps) == 0 ? lines : -1;
}

/* By fork and exec, and again from there. */
static int heaps_of_grandchild(void) {
    int pipe_ends[2];
    FILE* maps;
    int lines, status;
    pid_t child;
    if (pipe(pipe_ends) != 0) return -1;
    child = fork();
    if (child == 0) {
        dup2(pipe_ends[1], 1);
        execlp("sh", "sh", "-c", "sh -c 'cat /proc/self/maps; :'; :", (char*)NULL);
        _exit(127);
    }
    close(pipe_ends[1]);
    maps = fdopen(pipe_ends[0], "r");
    lines = count_lines(maps);
    fclose(maps);
    return waitpid(child, &status, 0) == child && status == 0 ? lines : -1;
}

int main(int argc, char** argv) {
    int own, by_popen, by_fork, by_job, good;
    FILE* maps;
    MPI_Init(&argc, &argv);
    maps = fopen("/proc/self/maps", "r");
    own = count_lines(maps);
    fclose(maps);
    by_popen = heaps_of_popen();
    by_fork = heaps_of_grandchild();
    by_job = heaps_of_other_job();
    good = own > 0 && by_popen == 0 && by_fork == 0 && by_job > 0;
    printf("heaps: own %d, of popen %d, of a grandchild %d, of another job %d: %s\n", own, by_popen, by_fork,
           by_job, good ? "right" : "WRONG");
    MPI_Finalize();
    return good ? 0 : 1;
}
