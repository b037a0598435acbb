// SPDX-License-Identifier: BSD-3-Clause
//
// Directories under the thread sanitizer: each thread stands for a rank that shows cards for a row of
// communicators, looks those of all others up, counts itself out, and removes its own when all are out. What
// a card says must be what its owner wrote, also while other entries come and go, few or so many that they
// leave their places.
#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "channel/directory.h"

namespace {

using coco::channel::ControlCard;
using coco::channel::Directory;

constexpr int kRanks = 4;

struct Ranks {
    std::unique_ptr<Directory> directories[kRanks];
    std::vector<std::atomic<int>> leavers;  // by communicator
};

// Unlike numbers that all want to lie near one another.
std::uint64_t id_of(int communicator) {
    return 1 + static_cast<std::uint64_t>(communicator) * Directory::kEntries;
}

ControlCard card_of(int communicator, int rank) {
    const auto number = static_cast<std::uint64_t>(communicator) * 100 + static_cast<std::uint64_t>(rank);
    return {
        .control_at = number, .epoch_base = number + 1, .tape_at = number + 2, .leavers_before = number + 3};
}

const ControlCard& look_up(Directory& directory, int communicator) {
    for (;;) {
        const std::uint64_t seen = directory.changes().value.load(std::memory_order_acquire);
        if (const ControlCard* card = directory.find(id_of(communicator))) return *card;
        coco::sync::wait(directory.changes().value, directory.changes().doorbell, seen + 1, {.spins = 10});
    }
}

// `ahead`: so many communicators are alive at once. Returns: how many cards were wrong.
int play(Ranks& ranks, int me, int ahead) {
    int wrong = 0, removed = 0;
    const auto communicators = static_cast<int>(ranks.leavers.size());
    for (int c = 0; c < communicators; ++c) {
        if (!ranks.directories[me]->add(id_of(c), card_of(c, me))) ++wrong;
        for (int r = 0; r < kRanks; ++r) {
            const ControlCard &card = look_up(*ranks.directories[r], c), right = card_of(c, r);
            if (card.control_at != right.control_at || card.leavers_before != right.leavers_before) ++wrong;
        }
        ranks.leavers[static_cast<std::size_t>(c)].fetch_add(1, std::memory_order_release);
        for (; removed < c - ahead; ++removed) {
            while (ranks.leavers[static_cast<std::size_t>(removed)].load(std::memory_order_acquire) < kRanks)
                std::this_thread::yield();
            ranks.directories[me]->remove(id_of(removed));
            if (ranks.directories[me]->find(id_of(removed)) != nullptr) ++wrong;
        }
    }
    return wrong;
}

int run(int communicators, int ahead) {
    Ranks ranks{.directories = {},
                .leavers = std::vector<std::atomic<int>>(static_cast<std::size_t>(communicators))};
    for (auto& directory : ranks.directories) directory = std::make_unique<Directory>();
    int wrong[kRanks] = {};
    std::vector<std::thread> threads;
    for (int r = 0; r < kRanks; ++r) threads.emplace_back([&, r] { wrong[r] = play(ranks, r, ahead); });
    for (std::thread& t : threads) t.join();
    int sum = 0;
    for (int w : wrong) sum += w;
    std::printf("%d communicators, %d alive at once: %d wrong\n", communicators, ahead, sum);
    return sum;
}

}  // namespace

int main() { return run(3000, 3) + run(600, 40) == 0 ? 0 : 1; }
