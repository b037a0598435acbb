// SPDX-License-Identifier: BSD-3-Clause
//
// Flags and doorbells by themselves: raises, and waits that end in a sleep.
#include "ranks.h"

namespace coco::model {
namespace {

struct Bell {
    sync::Flag flag;
    std::uint64_t word;
};
Bell* g_bell;

void raise_to(std::uint64_t last) {
    for (std::uint64_t value = 1; value <= last; ++value) {
        if (value == last) g_bell->word = last;
        sync::raise(g_bell->flag.value, g_bell->flag.doorbell, value);
    }
}

void wait_for(std::uint64_t last, const sync::WaitPolicy& waiting) {
    sync::wait(g_bell->flag.value, g_bell->flag.doorbell, last, waiting);
    expect(g_bell->word == last, "a wait that has ended too soon");
}

}  // namespace

std::vector<Scenario> doorbell_scenarios() {
    auto make = [](const char* name, int ranks, std::uint64_t raises, int looks,
                   const sync::WaitPolicy& waiting) -> Scenario {
        return {.name = name,
                .ranks = ranks,
                .looks = looks,
                .prepare = [] { g_bell = make_shared_of<Bell>(0); },
                .play = [=](int rank) { rank == 0 ? raise_to(raises) : wait_for(raises, waiting); }};
    };
    return {
        make("spinning at a flag", 2, 2, 1, kSpins),
        make("sleeping at a bell", 2, 1, 2, kSleeps),
        make("sleeping at a bell, 2 raises", 2, 2, 2, kSleeps),
        make("2 sleep at a bell", 3, 1, 1, kSleeps),
    };
}

}  // namespace coco::model
