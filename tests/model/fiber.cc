// SPDX-License-Identifier: BSD-3-Clause
#include "fiber.h"

#include <setjmp.h>
#include <ucontext.h>

#include <utility>

#include "graph.h"

namespace coco::model {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024;

struct Fiber {
    alignas(64) char stack[kStackBytes];
    ucontext_t begin;
    jmp_buf at;
    std::function<void()> body;
    bool started, ended;
};

Fiber g_fibers[kThreadsMost];
jmp_buf g_scheduler;
int g_running = -1;

void run_body() {
    Fiber& fiber = g_fibers[g_running];
    fiber.body();
    fiber.ended = true;
    pause_fiber();
}

}  // namespace

void start_fiber(int thread, std::function<void()> body) {
    Fiber& fiber = g_fibers[thread];
    fiber.body = std::move(body);
    fiber.started = fiber.ended = false;
    if (fiber.begin.uc_stack.ss_sp == nullptr) getcontext(&fiber.begin);
    fiber.begin.uc_stack.ss_sp = fiber.stack;
    fiber.begin.uc_stack.ss_size = sizeof fiber.stack;
    fiber.begin.uc_link = nullptr;
    makecontext(&fiber.begin, run_body, 0);
}

// The first switch to a context is slow, as it sets the signal mask; the others are jumps.
bool run_fiber(int thread) {
    Fiber& fiber = g_fibers[thread];
    g_running = thread;
    if (_setjmp(g_scheduler) == 0) {
        if (std::exchange(fiber.started, true)) _longjmp(fiber.at, 1);
        setcontext(&fiber.begin);
    }
    g_running = -1;
    return g_fibers[thread].ended;
}

void pause_fiber() {
    if (_setjmp(g_fibers[g_running].at) == 0) _longjmp(g_scheduler, 1);
}

int running_fiber() { return g_running; }

}  // namespace coco::model
