// SPDX-License-Identifier: BSD-3-Clause
//
// The stage ring: blocks of half of it and of all of it, which come round sooner than the slots that name
// them.
#include "ranks.h"

namespace coco::model {
namespace {

std::uint64_t bytes_in(const channel::Channel& channel) {
    return channel.epoch() % 2 == 0 ? channel::kStageBytes : channel::kStageBytes / 2;
}

void stage_block(channel::Channel& channel) {
    channel::Slot& slot = channel.open_slot();
    std::byte* block = channel.stage_bytes(bytes_in(channel));
    for (std::uint64_t at = 0; at < bytes_in(channel); at += channel::kStageBytes / 2)
        *reinterpret_cast<std::uint64_t*>(block + at) = word_of(channel, channel.rank());
    slot.scratch_at = channel.offset_of(block);
    channel.publish(slot);
}

void read_block(channel::Channel& channel, int peer) {
    channel.wait_arrived(peer);
    const std::byte* block = channel.at(peer, channel.slot_of(peer).scratch_at);
    for (std::uint64_t at = 0; at < bytes_in(channel); at += channel::kStageBytes / 2)
        expect(*reinterpret_cast<const std::uint64_t*>(block + at) == word_of(channel, peer),
               "another call's block");
}

void pull_staged(int rank, int epochs) {
    channel::Channel& channel = *g_channels[rank];
    for (int e = 0; e < epochs; ++e) {
        channel.begin_epoch();
        if (rank == 0)
            stage_block(channel);
        else
            read_block(channel, 0);
        channel.raise(schedule::kDone);
    }
}

}  // namespace

std::vector<Scenario> stage_scenarios() {
    auto make = [](const char* name, int ranks, int epochs, int looks) -> Scenario {
        return {.name = name,
                .ranks = ranks,
                .looks = looks,
                .prepare = [=] { open_all(ranks, kYields); },
                .play = [=](int rank) { pull_staged(rank, epochs); }};
    };
    return {make("stage of 2", 2, 5, 2), make("stage of 3", 3, 3, 1)};
}

}  // namespace coco::model
