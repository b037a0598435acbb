// SPDX-License-Identifier: BSD-3-Clause
//
// Control blocks go from one communicator to the next while somebody may still read them.
#include "channel/control_pool.h"
#include "channel/directory.h"
#include "fiber.h"
#include "heap/heap.h"
#include "heap/segment.h"
#include "ranks.h"

// The pool takes memory of the rank that runs.
namespace coco::heap {

std::byte* take_room(std::uint64_t bytes) {
    return static_cast<std::byte*>(
        model::take_shared(model::running_fiber(), bytes, alignof(channel::Control)));
}
void* allocate_shared(std::size_t, std::size_t) { return nullptr; }
bool is_shared(const void*, std::size_t) { return true; }
std::uint64_t follow_growth(const std::byte*) { return 0; }
void release(void*) {}

}  // namespace coco::heap

namespace coco::model {
namespace {

using channel::Channel, channel::Control, channel::ControlCard, channel::ControlPool, channel::Directory;

ControlPool* g_pools[kThreadsMost];
Directory* g_directories[kThreadsMost];

// A block of the rank's pool, which should sometimes be one that has been used.
Control* take_of(int rank) {
    Control* control = g_pools[rank]->take();
    if (control->flag.value.load(std::memory_order_relaxed) != schedule::kDone) note_goal();
    return control;
}

// As communicators are that meet by their directories: the block goes there when it is taken.
void open_shown(Channel& channel, int rank, std::uint64_t id, const std::vector<int>& ranks) {
    Control* control = take_of(rank);
    const ControlCard card{.control_at = static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(control) -
                                                                    shared_memory_of(rank)),
                           .epoch_base = control->flag.value.load(std::memory_order_relaxed) >> 20,
                           .tape_at = control->tape_at,
                           .leavers_before = control->leavers.load(std::memory_order_relaxed)};
    std::vector<channel::Peer> peers(kThreadsMost);
    std::vector<std::int32_t> mates;
    for (int r : ranks) {
        peers[static_cast<std::size_t>(r)] = {.segment = shared_memory_of(r), .directory = g_directories[r]};
        if (r != rank) mates.push_back(r);
    }
    channel::Peer& own = peers[static_cast<std::size_t>(rank)];
    own.control = control;
    own.epoch_base = card.epoch_base;
    own.tape_at = card.tape_at;
    channel.open(id, rank, std::move(peers), mates);
    channel.waiting = kYields;
    g_pools[rank]->show(*g_directories[rank], id, card);
}

void leave(Channel& channel, int rank, const std::vector<int>& ranks) {
    const channel::LeaveInfo leave{.id = channel.id(),
                                   .ranks = ranks.size(),
                                   .first_directory = g_directories[ranks[0]],
                                   .first_segment = shared_memory_of(ranks[0]),
                                   .own_directory = g_directories[rank]};
    g_pools[rank]->retire(channel.close(), leave, {});
}

// Calls in which all read the first one's slot: as many as there are slots.
void call(Channel& channel, int rank, int first) {
    for (std::uint64_t i = 0; i < channel::kSlots; ++i) {
        channel.begin_epoch();
        if (rank == first) {
            show(channel);
        } else {
            channel.wait_arrived(first);
            expect_slot(channel, first);
        }
        channel.raise(schedule::kDone);
    }
}

// Communicators of the same ranks, one after the other. Rank 0 waits for nobody.
void play_shown(int rank, int ranks, int communicators) {
    std::vector<int> all;
    for (int r = 0; r < ranks; ++r) all.push_back(r);
    Channel& channel = *new Channel;
    for (int c = 0; c < communicators; ++c) {
        open_shown(channel, rank, static_cast<std::uint64_t>(2 * c + 1), all);
        call(channel, rank, 0);
        leave(channel, rank, all);
    }
}

// Ranks 0 and 1 know each other's blocks. In the next communicator rank 0 is with rank 2, which comes late.
void play_known(int rank) {
    Channel& channel = *g_channels[rank];
    call(channel, rank, 0);
    if (rank != 0) return;
    g_pools[rank]->retire(channel.close(), channel.pending());
    g_controls[0] = take_of(rank);
    open_known(channel, 0, {0, 2});
    call(channel, 0, 0);
}

}  // namespace

std::vector<Scenario> recycling_scenarios() {
    auto prepare = [] {
        for (int r = 0; r < kThreadsMost; ++r) {
            g_pools[r] = new ControlPool;
            g_directories[r] = make_shared_of<Directory>(r);
            g_channels[r] = new Channel;
            g_controls[r] = make_control_of(r);
        }
        for (int r : {0, 1}) open_known(*g_channels[r], r, {0, 1});
        for (int r : {0, 1}) g_channels[r]->waiting = kYields;
    };
    auto make = [&](const char* name, int ranks, int looks, std::function<void(int)> play) -> Scenario {
        return {.name = name, .ranks = ranks, .looks = looks, .prepare = prepare, .play = std::move(play)};
    };
    return {
        make("recycling by directories", 2, 1, [](int rank) { play_shown(rank, 2, 2); }),
        make("recycling by 3 directories", 3, 0, [](int rank) { play_shown(rank, 3, rank == 0 ? 2 : 1); }),
        make("recycling of known blocks", 2, 1, play_known),
    };
}

}  // namespace coco::model
