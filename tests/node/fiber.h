// SPDX-License-Identifier: BSD-3-Clause
//
// A function that runs on a stack of its own, can be left in its midst and resumed later. Sanitizers are told
// which stack is in use. Used by tests. Thread safety: a fiber belongs to the thread that made it. Fails:
// without memory for a stack, or if a fiber is resumed that runs or is over, the test aborts.
#pragma once
#include <sys/mman.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#ifndef __has_feature  // of Clang; GCC defines a name for each sanitizer
#define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define FIBER_ADDRESSES(calls) calls
#else
#define FIBER_ADDRESSES(calls)
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#define FIBER_THREADS(calls) calls
#else
#define FIBER_THREADS(calls)
#endif

namespace test {

class Fiber {
  public:
    // The body begins with the first resume(). No exception leaves it.
    explicit Fiber(std::function<void()> body) : body_(std::move(body)), stack_(take_stack()) {}
    // If the body has begun and is not over, its objects are never destroyed.
    ~Fiber() {
        if (over_ || !begun_) free_stacks_.push_back(std::move(stack_));
    }
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // Runs the body until it is left or ends. Returns: whether it is over.
    bool resume() {
        if (over_ || running_ != nullptr) std::abort();
        begun_ = true;
        running_ = this;
        FIBER_THREADS(stack_->outside.known_as = __tsan_get_current_fiber());
        change(stack_->outside, stack_->inside);
        running_ = nullptr;
        return over_;
    }
    // Leaves the fiber that runs in this thread. Returns once it is resumed: whether there was one to leave.
    // As the hook of a wait that means that work was found: the wait begins anew, with the policy it has by then.
    static bool leave() {
        if (running_ == nullptr) return false;
        change(running_->stack_->inside, running_->stack_->outside);
        return true;
    }

  private:
    static constexpr std::size_t kStackBytes = 256 * 1024;
    static constexpr std::size_t kGuardBytes = 64 * 1024;  // a page, or several

    // Where a stack was left, and what sanitizers have to be told of it.
    struct Side {
        ucontext_t context{};
        const void* bottom = nullptr;
        std::size_t stack_bytes = 0;
        void* fake_stack = nullptr;
        void* known_as = nullptr;
    };
    // A stack of fibers, one after the other, and the stack of their thread.
    struct Stack {
        Stack() {
            constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
            map = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
            if (map == MAP_FAILED || mprotect(map, kGuardBytes, PROT_NONE) != 0) std::abort();
            void* bottom = static_cast<std::byte*>(map) + kGuardBytes;
            getcontext(&inside.context);
            inside.context.uc_stack.ss_sp = bottom;
            inside.context.uc_stack.ss_size = kStackBytes;
            makecontext(&inside.context, run_bodies, 0);
            // AddressSanitizer forgets at each switch what it knows of a stack that it finds here.
            inside.context.uc_stack.ss_size = 0;
            inside.bottom = bottom;
            inside.stack_bytes = kStackBytes;
            FIBER_THREADS(inside.known_as = __tsan_create_fiber(0));
        }
        ~Stack() {
            FIBER_THREADS(__tsan_destroy_fiber(inside.known_as));
            FIBER_ADDRESSES(__asan_unpoison_memory_region(inside.bottom, kStackBytes));
            munmap(map, kGuardBytes + kStackBytes);
        }
        Stack(const Stack&) = delete;
        Stack& operator=(const Stack&) = delete;
        void* map;
        Side inside, outside;
    };
    static std::unique_ptr<Stack> take_stack() {
        if (free_stacks_.empty()) return std::make_unique<Stack>();
        std::unique_ptr<Stack> stack = std::move(free_stacks_.back());
        free_stacks_.pop_back();
        return stack;
    }

    // Goes on with `to`. Returns once another change goes on with `from`.
    static void change(Side& from, Side& to) {
        FIBER_ADDRESSES(__sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.stack_bytes));
        FIBER_THREADS(__tsan_switch_to_fiber(to.known_as, 0));
        swapcontext(&from.context, &to.context);
        FIBER_ADDRESSES(__sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr));
    }
    // What a stack runs: its fibers' bodies.
    static void run_bodies() {
        FIBER_ADDRESSES(Side& outside = running_->stack_->outside);
        FIBER_ADDRESSES(__sanitizer_finish_switch_fiber(nullptr, &outside.bottom, &outside.stack_bytes));
        for (;;) {
            running_->body_();
            running_->over_ = true;
            leave();
        }
    }

    static inline thread_local std::vector<std::unique_ptr<Stack>> free_stacks_;
    static inline thread_local Fiber* running_ = nullptr;

    const std::function<void()> body_;
    std::unique_ptr<Stack> stack_;
    bool begun_ = false, over_ = false;
};

}  // namespace test
