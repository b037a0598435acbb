// SPDX-License-Identifier: BSD-3-Clause
//
// The common part of the scenarios: the ranks of a run with their channels, and what they write and look for.
#pragma once
#include <cstdint>
#include <vector>

#include "channel/channel.h"
#include "explorer.h"
#include "memory.h"

namespace coco::model {

inline constexpr sync::WaitPolicy kYields{.spins = 0, .yields = 1};
inline constexpr sync::WaitPolicy kSpins{.spins = 1, .yields = 1};
inline constexpr sync::WaitPolicy kSleeps{.spins = 0, .yields = 1, .least_sleep_ns = 1, .most_sleep_ns = 1};

inline channel::Control* g_controls[kThreadsMost];
inline channel::Channel* g_channels[kThreadsMost];

inline channel::Control* make_control_of(int rank) {
    auto* control = make_shared_of<channel::Control>(rank);
    control->flag.value.store(schedule::kDone, std::memory_order_relaxed);  // as the pool does
    return control;
}

// Opens a channel of these ranks, whose blocks are known, for one of them.
inline void open_known(channel::Channel& channel, int rank, const std::vector<int>& ranks) {
    std::vector<channel::Peer> peers(kThreadsMost);
    std::vector<std::int32_t> mates;
    for (int r : ranks) {
        channel::Peer& peer = peers[static_cast<std::size_t>(r)];
        peer.segment = shared_memory_of(r);
        peer.control = g_controls[r];
        peer.epoch_base = g_controls[r]->flag.value.load(std::memory_order_relaxed) >> 20;
        if (r != rank) mates.push_back(r);
    }
    channel.open(0, rank, std::move(peers), mates);
}

// All ranks with new blocks and a channel, before a run.
inline void open_all(int ranks, const sync::WaitPolicy& waiting) {
    std::vector<int> all;
    for (int r = 0; r < ranks; ++r) {
        all.push_back(r);
        g_controls[r] = make_control_of(r);
    }
    for (int r = 0; r < ranks; ++r) {
        g_channels[r] = new channel::Channel;
        open_known(*g_channels[r], r, all);
        g_channels[r]->waiting = waiting;
    }
}

// The word that a rank says in an epoch.
inline std::uint64_t word_of(const channel::Channel& channel, int rank) {
    return channel.epoch() * 100 + static_cast<std::uint64_t>(rank) + 1;
}

// The rank's slot of this epoch: one word.
inline void show(channel::Channel& channel) {
    channel::Slot& slot = channel.open_slot();
    slot.scratch_at = word_of(channel, channel.rank());
    channel.publish(slot);
}

inline void expect_slot(channel::Channel& channel, int peer) {
    expect(channel.slot_of(peer).scratch_at == word_of(channel, peer), "another call's slot");
}

std::vector<Scenario> slot_scenarios();
std::vector<Scenario> tape_scenarios();
std::vector<Scenario> stage_scenarios();
std::vector<Scenario> stream_scenarios();
std::vector<Scenario> doorbell_scenarios();
std::vector<Scenario> recycling_scenarios();
std::vector<Scenario> directory_scenarios();
// In each something is wrong.
std::vector<Scenario> wrong_scenarios();

}  // namespace coco::model
