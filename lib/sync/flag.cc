// SPDX-License-Identifier: BSD-3-Clause
#include "sync/flag.h"

#include <sched.h>

#include <algorithm>

#include "os/cpu.h"
#include "os/futex.h"

namespace coco::sync {
namespace {

bool reached(const std::atomic<std::uint64_t>& word, std::uint64_t target) {
    return word.load(std::memory_order_acquire) >= target;  // pairs with the release in raise()
}

bool spin(const std::atomic<std::uint64_t>& word, std::uint64_t target, const WaitPolicy& policy) {
    for (std::uint32_t i = 0; i < policy.spins; ++i) {
        if (reached(word, target)) return true;
        os::pause();
    }
    return false;
}

enum class End { reached, idle, busy };

// Yields so many times, and after each look that found work once more as often as in the beginning. Returns:
// whether the word was reached, else whether there was work.
End yield(const std::atomic<std::uint64_t>& word, std::uint64_t target, std::uint32_t yields,
          const WaitPolicy& policy) {
    End end = End::idle;
    for (std::uint32_t i = 1; i <= yields; ++i) {
        sched_yield();
        if (reached(word, target)) return End::reached;
        if (policy.progress == nullptr || i % policy.yields_per_progress != 0) continue;
        if (policy.progress()) {
            end = End::busy;
            yields = policy.yields;
            i = 0;
        }
        if (reached(word, target)) return End::reached;
    }
    return end;
}

// The bell's count is read before the word is looked at again: a ring after that makes the sleep return.
void sleep_once(const std::atomic<std::uint64_t>& word, Doorbell& bell, std::uint64_t target,
                std::uint64_t timeout_ns) {
    bell.sleepers.fetch_add(1, std::memory_order_seq_cst);
    std::uint32_t rings = bell.rings.load(std::memory_order_seq_cst);
    if (!reached(word, target)) os::futex_wait(bell.rings, rings, timeout_ns);
    bell.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

void ring(Doorbell& bell) {
    bell.rings.fetch_add(1, std::memory_order_seq_cst);
    os::futex_wake_all(bell.rings);
}

void wait_slowly(const std::atomic<std::uint64_t>& word, Doorbell& bell, std::uint64_t target,
                 const WaitPolicy& policy) {
    if (spin(word, target, policy)) return;
    std::uint32_t yields = policy.yields;
    std::uint64_t sleep_ns = policy.least_sleep_ns;
    for (;;) {
        const End end = yield(word, target, yields, policy);
        if (end == End::reached) return;
        if (policy.least_sleep_ns == 0) continue;
        if (end == End::busy) sleep_ns = policy.least_sleep_ns;
        sleep_once(word, bell, target, sleep_ns);
        if (reached(word, target)) return;
        sleep_ns = std::min(2 * sleep_ns, policy.most_sleep_ns);
        yields = 4 * policy.yields_per_progress;  // once asleep, only look around between two sleeps
    }
}

}  // namespace coco::sync
