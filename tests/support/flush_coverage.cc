// SPDX-License-Identifier: BSD-3-Clause
//
// For builds that count which code runs (scripts/coverage): each library and program writes its counts when
// it exits, but not when a process ends at once, as forked children and failed checks do. So these functions
// write them first. Called by whoever ends a process. Thread safety: any thread.
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" void __gcov_dump();

namespace {

[[noreturn]] void end(int status) {
    __gcov_dump();
    for (;;) syscall(SYS_exit_group, status);
}

}  // namespace

#define COCO_DOOR extern "C" __attribute__((visibility("default")))

COCO_DOOR void _exit(int status) { end(status); }
COCO_DOOR void _Exit(int status) noexcept { end(status); }
COCO_DOOR void abort() noexcept {
    __gcov_dump();
    signal(SIGABRT, SIG_DFL);
    for (;;) raise(SIGABRT);
}
