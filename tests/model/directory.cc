// SPDX-License-Identifier: BSD-3-Clause
//
// A directory: cards are shown near and far from their places, looked up, removed, and others shown there.
#include "channel/directory.h"

#include "ranks.h"

namespace coco::model {
namespace {

using channel::ControlCard, channel::Directory;

struct Shown {
    Directory directory;
    std::atomic<std::uint64_t> leavers;
};
Shown* g_shown;

// All belong to one place.
constexpr std::uint64_t kFirst = 1, kFar = 1 + 2 * Directory::kEntries, kLater = 1 + 4 * Directory::kEntries;

ControlCard card_of(std::uint64_t id) { return {id, id + 1, id + 2, id + 3}; }

void look_up(std::uint64_t id) {
    Directory& directory = g_shown->directory;
    const ControlCard* card = nullptr;
    for (;;) {
        const std::uint64_t seen = directory.changes().value.load(std::memory_order_acquire);
        if ((card = directory.find(id)) != nullptr) break;
        sync::wait(directory.changes().value, directory.changes().doorbell, seen + 1, kYields);
    }
    expect(card->control_at == id && card->leavers_before == id + 3, "another communicator's card");
}

void leave() { g_shown->leavers.fetch_add(1, std::memory_order_release); }

void await_leavers(std::uint64_t leavers) {
    while (g_shown->leavers.load(std::memory_order_acquire) < leavers) look_again();
}

void show(std::uint64_t id) { expect(g_shown->directory.add(id, card_of(id)), "a full directory"); }

// Two cards, of which one has to lie far; both go, and a third takes the place of the first.
void show_all(bool far, std::uint64_t readers) {
    show(kFirst);
    if (far) show(kFar);
    await_leavers(readers);
    g_shown->directory.remove(kFirst);
    if (far) g_shown->directory.remove(kFar);
    show(kLater);
}

void look_all_up(bool far) {
    look_up(kFirst);
    if (far) look_up(kFar);
    leave();
    look_up(kLater);
}

void play_with_far(int rank) { rank == 0 ? show_all(true, 1) : look_all_up(true); }

// The third rank knows the later card only.
void play_with_third(int rank) {
    if (rank == 0) show_all(false, 1);
    if (rank == 1) look_all_up(false);
    if (rank == 2) look_up(kLater);
}

void play_far_only(int rank) {
    if (rank == 0) {
        show(kFirst);
        show(kFar);
    } else {
        look_up(kFar);
    }
}

}  // namespace

std::vector<Scenario> directory_scenarios() {
    auto make = [](const char* name, int ranks, int looks, void (*play)(int)) -> Scenario {
        return {.name = name,
                .ranks = ranks,
                .looks = looks,
                .prepare =
                    [] {
                        g_shown = make_shared_of<Shown>(0);
                        for (std::uint64_t id : {5, 7}) show(id);  // in the other places
                    },
                .play = play};
    };
    return {
        make("directory", 2, 1, play_with_far),
        make("directory with a far card", 2, 2, play_far_only),
        make("directory of 3", 3, 0, play_with_third),
    };
}

}  // namespace coco::model
