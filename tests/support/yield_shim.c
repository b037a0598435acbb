// SPDX-License-Identifier: BSD-3-Clause
//
// Test equipment, preloaded for MPICH runs with more ranks than cores or on several hosts. Debian's MPICH
// (ch4:ucx) has two habits:
//
//   It polls without ever yielding the CPU, so that a rank which waits keeps the awaited rank from running
//   for whole scheduler slices. Here a progress call that found nothing to do gives the CPU away.
//
//   Over TCP it hangs in MPI_Finalize now and then: it flushes each endpoint, which waits for the peer's
//   answer, and the peer may already wait in the launcher's barrier, where it answers nothing. Here endpoints
//   are left to ucp_worker_destroy, which comes after that barrier.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>

typedef unsigned (*progress_function)(void* worker);

// Returns: what UCX gives for an endpoint closed at once.
void* ucp_disconnect_nb(void* endpoint) {
    (void)endpoint;
    return NULL;
}

unsigned ucp_worker_progress(void* worker) {
    static progress_function next = NULL;
    if (next == NULL) {
        // A union, since ISO C has no cast from object to function pointers.
        union {
            void* object;
            progress_function function;
        } symbol = {dlsym(RTLD_NEXT, "ucp_worker_progress")};
        // A program that opens MPI by dlopen has UCX out of RTLD_NEXT's sight.
        if (symbol.object == NULL)
            symbol.object = dlsym(dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD), "ucp_worker_progress");
        if (symbol.object == NULL) abort();
        next = symbol.function;
    }
    unsigned events = next(worker);
    if (events == 0) sched_yield();
    return events;
}
