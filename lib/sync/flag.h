// SPDX-License-Identifier: BSD-3-Clause
//
// A rank's flag: a counter in shared memory that only its owner raises and any process of the node waits for.
// Monotone: it never goes down. What is written before a raise is seen after the wait that it ends.
// Thread safety: one raiser, any number of waiters. This room knows no MPI: what has to be done while waiting
// comes in through WaitPolicy.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/bits.h"
#include "base/check.h"
#include "os/cpu.h"

namespace coco::sync {

// Where waiters for words of one owner sleep. What each order is for is said in sleep_once() and ring().
struct Doorbell {
    std::atomic<std::uint32_t> sleepers{0};
    std::atomic<std::uint32_t> rings{0};
};

struct alignas(os::kLineBytes) Flag {
    std::atomic<std::uint64_t> value{0};
    Doorbell doorbell;
};

// How a rank waits. It spins with pause, then it yields and drives progress. Where it has a CPU of its own
// that goes on to the end: others may rely on this rank to serve their one-sided communication and messages
// at once, as MPI libraries do, which never sleep. Where ranks outnumber CPUs the rank sleeps between its
// looks, shortly at first and twice as long each time, so that others can use the CPU. A look that found work
// for the MPI library makes the rank as wakeful as in the beginning: more such work is likely to come.
struct WaitPolicy {
    std::uint32_t spins = 2000;    // 0 where ranks outnumber CPUs
    std::uint32_t yields = 20000;  // before the first sleep
    std::uint32_t yields_per_progress = 1;
    std::uint64_t least_sleep_ns = 0;  // the first sleep; 0: the rank never sleeps
    std::uint64_t most_sleep_ns = 0;   // the longest sleep without driving progress
    // Drives the MPI library; may go on with other work, on another stack, before it returns. Returns:
    // whether the look found work. May be null.
    bool (*progress)() = nullptr;
};

// Waits until `word` is at least `target`. `bell` belongs to the raiser of the word. Never gives up.
void wait_slowly(const std::atomic<std::uint64_t>& word, Doorbell& bell, std::uint64_t target,
                 const WaitPolicy& policy);

inline void wait(const std::atomic<std::uint64_t>& word, Doorbell& bell, std::uint64_t target,
                 const WaitPolicy& policy) {
    // Acquire: pairs with the store in raise(). Whichever of the owner's raises this reads from, it
    // synchronises with it, and all that the owner did before is seen.
    if (word.load(std::memory_order_acquire) >= target) return;
    wait_slowly(word, bell, target, policy);
}

// Wakes those who sleep at the bell. Called by raise(); apart for words outside a Flag.
void ring(Doorbell& bell);

// Requires: value is above the word's, and only this thread raises it.
inline void raise(std::atomic<std::uint64_t>& word, Doorbell& bell, std::uint64_t value) {
    // Relaxed: only this thread raises the word.
    COCO_CHECK_DEAR(word.load(std::memory_order_relaxed) < value, "a flag only grows");
    // Release: pairs with the acquire loads of those who wait for the word, here, in flag.cc and in the
    // channel.
    word.store(value, std::memory_order_release);
    // Relaxed: its partner is the count in sleep_once(), and nothing is read on the strength of it. No fence
    // keeps it behind the store: a sleeper missed in that window wakes by its own bound (decision 10).
    if (bell.sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]]
        ring(bell);
}

}  // namespace coco::sync
