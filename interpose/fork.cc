// SPDX-License-Identifier: BSD-3-Clause
//
// The doors of fork and _Fork, for callers whose stack is malloc's memory (handlers on a signal stack,
// coroutines, threads with stacks of their own). Parent and child would run on one and the same shared pages
// until the child has its copy of them (heap/fork.h). So fork itself runs on a private stack there, and both
// go on on the old one when each has its own.
#include <dlfcn.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "heap/segment.h"

namespace {

using Fork = pid_t (*)();

// Looked up before any signal handler may need them.
Fork g_fork = nullptr, g_bare_fork = nullptr;
__attribute__((constructor)) void look_up() {
    g_fork = reinterpret_cast<Fork>(dlsym(RTLD_NEXT, "fork"));
    g_bare_fork = reinterpret_cast<Fork>(dlsym(RTLD_NEXT, "_Fork"));
}
pid_t fork_with_handlers() {
    if (g_fork == nullptr) look_up();
    return g_fork();
}
// Lies at the start of the private stack, so that the kernel copies it for the child.
struct Job {
    ucontext_t caller, forker;
    Fork fork;
    pid_t result;
    int error;
};
constexpr std::size_t kStackBytes = 256 * 1024;

void run(unsigned high, unsigned low) {
    auto* job = reinterpret_cast<Job*>(std::uint64_t{high} << 32 | low);
    job->result = job->fork();
    job->error = errno;
}

pid_t fork_elsewhere(Fork fork) {
    void* stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) return -1;
    auto* job = static_cast<Job*>(stack);
    const auto address = reinterpret_cast<std::uint64_t>(job);
    job->fork = fork;
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

pid_t fork_on_private_stack(Fork fork, const void* frame) {
    return coco::heap::own().bytes != 0 && coco::heap::is_shared(frame) ? fork_elsewhere(fork) : fork();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) pid_t fork() {
    return fork_on_private_stack(fork_with_handlers, __builtin_frame_address(0));
}
extern "C" __attribute__((visibility("default"))) pid_t _Fork() {
    if (g_bare_fork == nullptr) look_up();
    if (g_bare_fork == nullptr) {  // before glibc 2.34
        errno = ENOSYS;
        return -1;
    }
    return fork_on_private_stack(g_bare_fork, __builtin_frame_address(0));
}
