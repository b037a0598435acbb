// SPDX-License-Identifier: BSD-3-Clause
//
// Test equipment, preloaded where tests run side by side. A rank that waits gives the CPU away again and
// again, and where more ranks than CPUs wait, the kernel is busy with that alone. Here a thread that has
// given the CPU away 25 times in a row is to rest, so that the ranks of the other test have the CPU: in the
// MPI library it takes a nap each time after. Where ranks outnumber the CPUs, libcoco lets them fall asleep
// by itself after 2,000 attempts: these attempts are cut short. Ranks of libcoco's that do not sleep give the
// CPU away again after 4,000.
//
// In MPICH's MPI_Init ranks wait for one another and never give the CPU away, so that it goes to the others
// with the kernel's next tick, some milliseconds later. There a signal makes the rank give it away, at first
// twice in a millisecond.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

static timer_t g_timer;
static volatile sig_atomic_t g_period_ns = 500000;

// A step that takes longer than the period, and begins anew behind a signal, would never end: so each period
// is a little longer than the one before.
static void await_next(void) {
    const struct itimerspec next = {{0, 0}, {0, g_period_ns}};
    timer_settime(g_timer, 0, &next, NULL);
    if (g_period_ns < 100000000) g_period_ns += g_period_ns / 100;
}

static void give_the_cpu_away(int number) {
    (void)number;
    const int before = errno;
    syscall(SYS_sched_yield);
    await_next();
    errno = before;
}

static int is_mpich(void) { return dlsym(RTLD_DEFAULT, "MPIR_Err_create_code") != NULL; }

// Returns: whether the timer runs.
static int start_timer(void) {
    const int number = SIGRTMIN + 9;  // no test, and none of the libraries, has it
    const struct sigaction action = {.sa_handler = give_the_cpu_away, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = number};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);  // glibc has no better name for it
    if (sigaction(number, &action, NULL) != 0 || timer_create(CLOCK_MONOTONIC, &event, &g_timer) != 0)
        return 0;
    await_next();
    return 1;
}

// The function that would have been called without this library, of an MPI library that the program has
// opened by itself, too.
static void* next_function(const char* name) {
    void* next = dlsym(RTLD_NEXT, name);
    if (next == NULL) {
        void* const library = dlopen("libmpich.so.12", RTLD_LAZY | RTLD_NOLOAD);
        next = library != NULL ? dlsym(library, name) : NULL;
    }
    if (next == NULL) {
        fprintf(stderr, "naps: there is no other %s\n", name);
        abort();
    }
    return next;
}

int MPI_Init(int* count, char*** arguments) {
    int (*const next)(int*, char***) = (int (*)(int*, char***))next_function("MPI_Init");
    const int is_timed = is_mpich() && start_timer();
    const int status = next(count, arguments);
    if (is_timed) timer_delete(g_timer);
    return status;
}

int MPI_Init_thread(int* count, char*** arguments, int required, int* provided) {
    int (*const next)(int*, char***, int, int*) =
        (int (*)(int*, char***, int, int*))next_function("MPI_Init_thread");
    const int is_timed = is_mpich() && start_timer();
    const int status = next(count, arguments, required, provided);
    if (is_timed) timer_delete(g_timer);
    return status;
}
