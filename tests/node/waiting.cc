// SPDX-License-Identifier: BSD-3-Clause
//
// Flags and doorbells under the thread sanitizer: what is written before a raise is seen after the wait, and
// nobody who waits is forgotten, spinning, yielding or asleep. Threads stand in for ranks: the sanitizer sees
// one process.
#include <cstdio>
#include <thread>
#include <vector>

#include "sync/flag.h"

namespace {

constexpr int kRanks = 4;

struct Rank {
    coco::sync::Flag flag;
    std::uint64_t payload[2] = {};  // by parity of the round, as a stage with two places
};

// Rounds of: write my payload, raise, wait for all others, read theirs. Returns: how many reads were wrong.
int exchange(std::vector<Rank>& ranks, int me, int rounds, const coco::sync::WaitPolicy& policy) {
    int wrong = 0;
    for (std::uint64_t round = 1; round <= static_cast<std::uint64_t>(rounds); ++round) {
        Rank& mine = ranks[me];
        mine.payload[round % 2] = round * 100 + static_cast<std::uint64_t>(me);
        coco::sync::raise(mine.flag.value, mine.flag.doorbell, round);
        for (int r = 0; r < kRanks; ++r) {
            coco::sync::wait(ranks[r].flag.value, ranks[r].flag.doorbell, round, policy);
            if (ranks[r].payload[round % 2] != round * 100 + static_cast<std::uint64_t>(r)) ++wrong;
        }
    }
    return wrong;
}

int run(const char* name, int rounds, const coco::sync::WaitPolicy& policy) {
    std::vector<Rank> ranks(kRanks);
    int wrong[kRanks] = {};
    std::vector<std::thread> threads;
    for (int r = 0; r < kRanks; ++r)
        threads.emplace_back([&, r] { wrong[r] = exchange(ranks, r, rounds, policy); });
    for (std::thread& t : threads) t.join();
    int sum = 0;
    for (int w : wrong) sum += w;
    std::printf("%s: %d rounds, %d wrong\n", name, rounds, sum);
    return sum;
}

// Stands for the MPI library: the awaited word comes with the last of so many looks, of which each found work
// or none.
struct Looks {
    coco::sync::Flag flag;
    int left = 0;
    bool busy = false;
};
Looks* g_looks = nullptr;

bool look() {
    if (--g_looks->left == 0) coco::sync::raise(g_looks->flag.value, g_looks->flag.doorbell, 1);
    return g_looks->busy;
}

// A rank that sleeps here sleeps for an hour, and the test ends at its time limit.
void wait_awake(bool busy, coco::sync::WaitPolicy policy) {
    constexpr int kLooks = 5000;
    Looks looks{.flag = {}, .left = kLooks, .busy = busy};
    g_looks = &looks;
    policy.spins = 0;
    policy.yields = 10;
    policy.progress = look;
    coco::sync::wait(looks.flag.value, looks.flag.doorbell, 1, policy);
}

}  // namespace

int main() {
    constexpr std::uint64_t kHour_ns = 3'600'000'000'000u;
    wait_awake(false, {});  // a rank with a CPU of its own
    wait_awake(true, {.least_sleep_ns = kHour_ns, .most_sleep_ns = kHour_ns});

    int wrong = run("spinning", 2000, {.spins = 100, .yields = 1000});
    wrong += run("yielding", 2000, {.spins = 0, .yields = 1000});
    wrong += run("sleeping", 500,
                 {.spins = 0, .yields = 1, .least_sleep_ns = 1'000'000, .most_sleep_ns = 4'000'000});
    return wrong == 0 ? 0 : 1;
}
