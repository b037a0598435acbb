// SPDX-License-Identifier: BSD-3-Clause
//
// The door of fork, for callers whose stack is malloc's memory: handlers on a signal stack, coroutines,
// threads with stacks of their own. Parent and child would run on one and the same shared pages until the
// child has its copy of the heap (heap/fork.h). So fork itself runs on a private stack there, and both go on
// on the old one when each has its own.
#include <dlfcn.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "heap/segment.h"

namespace {

using Fork = pid_t (*)();

// Looked up before any signal handler may need it.
Fork g_next = nullptr;
__attribute__((constructor)) void look_up() { g_next = reinterpret_cast<Fork>(dlsym(RTLD_NEXT, "fork")); }
Fork next_fork() {
    if (g_next == nullptr) look_up();
    return g_next;
}

// Lies at the start of the private stack, so that the kernel copies it for the child.
struct Job {
    ucontext_t caller, forker;
    pid_t result;
    int error;
};
constexpr std::size_t kStackBytes = 256 * 1024;

void run(unsigned high, unsigned low) {
    auto* job = reinterpret_cast<Job*>(std::uint64_t{high} << 32 | low);
    job->result = next_fork()();
    job->error = errno;
}

pid_t fork_elsewhere() {
    void* stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) return -1;
    auto* job = static_cast<Job*>(stack);
    const auto address = reinterpret_cast<std::uint64_t>(job);
    getcontext(&job->forker);
    job->forker.uc_stack = {.ss_sp = job + 1, .ss_flags = 0, .ss_size = kStackBytes - sizeof(Job)};
    job->forker.uc_link = &job->caller;
    makecontext(&job->forker, reinterpret_cast<void (*)()>(run), 2, static_cast<unsigned>(address >> 32),
                static_cast<unsigned>(address));
    swapcontext(&job->caller, &job->forker);
    const pid_t result = job->result;
    const int error = job->error;
    munmap(stack, kStackBytes);
    if (result < 0) errno = error;
    return result;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) pid_t fork() {
    const bool on_heap = coco::heap::own().bytes != 0 && coco::heap::is_shared(__builtin_frame_address(0));
    return on_heap ? fork_elsewhere() : next_fork()();
}
