// SPDX-License-Identifier: BSD-3-Clause
//
// Test equipment, preloaded where tests run side by side. A rank that waits gives the CPU away again and again, and where more
// ranks than CPUs wait, the kernel is busy with that alone. Here a thread that has given the CPU away 25 times in a row
// is to rest, so that the ranks of the other test have the CPU: in the MPI library it takes a nap each time after. Where ranks
// outnumber the CPUs, libcoco lets them fall asleep by itself after 2,000 attempts: these attempts are cut short. Ranks of
// libcoco's that do not sleep give the CPU away again after 4,000.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

// By the address that a call returns to, of which a thread has few.
static int is_of_libcoco(void* code) {
    enum { places = 64 };
    static _Thread_local struct {
        void* code;
        int is_ours;
    } seen[places];
    const unsigned place = ((uintptr_t)code >> 2) % places;
    if (code != seen[place].code) {
        Dl_info found;
        seen[place].is_ours = dladdr(code, &found) != 0 && strstr(found.dli_fname, "libcoco.so") != NULL;
        seen[place].code = code;
    }
    return seen[place].is_ours;
}

int sched_yield(void) {
    enum { row_ends_ns = 100000, awake_yields = 25, asleep_by_yields = 4000, nap_ns = 20000 };
    static _Thread_local struct {
        int64_t last_ns;
        int yields;
    } rows[2];  // the MPI library's, and libcoco's
    const int is_ours = is_of_libcoco(__builtin_return_address(0));
    if (now_ns() - rows[is_ours].last_ns > row_ends_ns) rows[is_ours].yields = 0;
    int status = 0;
    if (rows[is_ours].yields < asleep_by_yields) ++rows[is_ours].yields;
    if (rows[is_ours].yields <= awake_yields || (is_ours && rows[is_ours].yields == asleep_by_yields)) {
        status = (int)syscall(SYS_sched_yield);
    } else if (!is_ours) {
        const struct timespec nap = {0, nap_ns};
        nanosleep(&nap, NULL);
    }
    rows[is_ours].last_ns = now_ns();
    return status;
}
