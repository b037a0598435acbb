// SPDX-License-Identifier: BSD-3-Clause
#include "sync/flag.h"

#include <sched.h>

#include <algorithm>

#include "base/check.h"
#include "os/cpu.h"
#include "os/futex.h"

namespace coco::sync {
namespace {

// Acquire: pairs with the store in raise(). The caller goes on to read what the raiser wrote before.
bool reached(const std::atomic<std::uint64_t>& word, std::uint64_t target) {
    return word.load(std::memory_order_acquire) >= target;
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
//
// The load of `rings` has to acquire: it pairs with ring(), which comes behind the raiser's store. Who reads
// the count of a ring sees that store at its next look; otherwise it could see the old word and sleep on the
// new count, with nobody left to ring. The look stays behind it for that reason, too.
//
// The count of sleepers has its partner in raise(), which loads it relaxed and may miss it (decision 10): no
// order here can mend that. seq_cst keeps the window short on processors where it is a fence, and costs
// nothing beside a sleep. It goes down relaxed: a raiser who still sees it rings for nobody.
void sleep_once(const std::atomic<std::uint64_t>& word, Doorbell& bell, std::uint64_t target,
                std::uint64_t timeout_ns) {
    COCO_CHECK_DEAR(timeout_ns != 0, "a sleep ends by itself");
    bell.sleepers.fetch_add(1, std::memory_order_seq_cst);
    std::uint32_t rings = bell.rings.load(std::memory_order_seq_cst);
    if (!reached(word, target)) os::futex_wait(bell.rings, rings, timeout_ns);
    bell.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

// The addition has to release: it pairs with the load of `rings` in sleep_once(), see there. It is one with
// the kernel's comparison in futex_wait(): a thread that compared before it is in the queue, and woken.
void ring(Doorbell& bell) {
    bell.rings.fetch_add(1, std::memory_order_seq_cst);
    os::futex_wake_all(bell.rings);
}

void wait_slowly(const std::atomic<std::uint64_t>& word, Doorbell& bell, std::uint64_t target,
                 const WaitPolicy& policy) {
    COCO_CHECK_DEAR(policy.yields_per_progress != 0, "the MPI library is driven at some yields");
    COCO_CHECK_DEAR(policy.least_sleep_ns <= policy.most_sleep_ns,
                    "the first sleep is no longer than the longest");
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
