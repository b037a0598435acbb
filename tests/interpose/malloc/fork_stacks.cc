// SPDX-License-Identifier: BSD-3-Clause
//
// Forks on stacks that malloc gave: in a signal handler on a stack of its own, in a coroutine, in a thread.
// Parent and child then write to their frames at once: each must see its own, and both must go on.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "expect.h"

namespace {

constexpr std::size_t kBytes = 256 * 1024;

// Writes to frames for a while; what is written is read again.
bool frames_are_own(unsigned char mark) {
    volatile unsigned char frame[4096];
    for (int round = 0; round < 200; ++round) {
        for (volatile unsigned char& byte : frame) byte = static_cast<unsigned char>(mark + round);
        for (volatile unsigned char& byte : frame)
            if (byte != static_cast<unsigned char>(mark + round)) return false;
    }
    return true;
}

void fork_here() {
    const int before = 4711;
    const pid_t child = fork();
    if (child == 0) _exit(frames_are_own(100) && before == 4711 ? 7 : 1);
    EXPECT(child > 0);
    EXPECT(frames_are_own(3));
    int status = 0;
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

void check_signal_stack() {
    stack_t stack{}, old{};
    stack.ss_sp = std::malloc(kBytes);
    stack.ss_size = kBytes;
    EXPECT(sigaltstack(&stack, &old) == 0);
    struct sigaction action {};
    action.sa_handler = [](int) { fork_here(); };
    action.sa_flags = SA_ONSTACK;
    EXPECT(sigaction(SIGUSR1, &action, nullptr) == 0);
    for (int i = 0; i < 5; ++i) raise(SIGUSR1);
    EXPECT(sigaltstack(&old, nullptr) == 0);
    std::free(stack.ss_sp);
}

void check_coroutine() {
    void* stack = std::malloc(kBytes);
    static ucontext_t caller, coroutine;
    getcontext(&coroutine);
    coroutine.uc_stack = {.ss_sp = stack, .ss_flags = 0, .ss_size = kBytes};
    coroutine.uc_link = &caller;
    makecontext(&coroutine, fork_here, 0);
    EXPECT(swapcontext(&caller, &coroutine) == 0);
    std::free(stack);
}

void check_thread() {
    void* stack = nullptr;
    EXPECT(posix_memalign(&stack, 4096, kBytes) == 0);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    EXPECT(pthread_attr_setstack(&attributes, stack, kBytes) == 0);
    pthread_t thread;
    auto body = [](void*) -> void* {
        fork_here();
        return nullptr;
    };
    EXPECT(pthread_create(&thread, &attributes, body, nullptr) == 0);
    pthread_join(thread, nullptr);
    std::free(stack);
}

// Threads with the least stack that the system allows fork, too.
void check_small_stack() {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    std::size_t bytes = 16 * 1024;
    while (pthread_attr_setstacksize(&attributes, bytes) != 0 && bytes < kBytes) bytes *= 2;
    EXPECT(bytes < kBytes);
    pthread_t thread;
    auto body = [](void*) -> void* {
        const pid_t child = fork();
        if (child == 0) _exit(7);
        int status = 0;
        EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
        return nullptr;
    };
    EXPECT(pthread_create(&thread, &attributes, body, nullptr) == 0);
    pthread_join(thread, nullptr);
}

}  // namespace

int main() {
    check_small_stack();
    check_signal_stack();
    check_coroutine();
    check_thread();
    return failures();
}
