// SPDX-License-Identifier: BSD-3-Clause
//
// Streams: pieces that one rank shows others in two places of its stage, which it fills again once they are
// read.
#include "ranks.h"

namespace coco::model {
namespace {

constexpr std::uint64_t kPlaces = 2;

std::uint64_t piece_of(const channel::Channel& channel, std::uint64_t piece) {
    return channel.epoch() * 100 + piece + 1;
}

void show_pieces(channel::Channel& channel, int ranks, std::uint64_t pieces) {
    channel::Slot& slot = channel.open_slot();
    auto* places = reinterpret_cast<std::uint64_t*>(channel.stage_bytes(channel::kStageBytes / 2));
    slot.scratch_at = channel.offset_of(places);
    channel.publish(slot);
    for (std::uint64_t k = 0; k < pieces; ++k) {
        for (int reader = 1; k >= kPlaces && reader < ranks; ++reader)
            channel.wait_read(reader, k - kPlaces + 1);
        places[k % kPlaces] = piece_of(channel, k);
        channel.raise_shown(0, k + 1);  // rank 0 itself stands for all
    }
}

void read_pieces(channel::Channel& channel, std::uint64_t pieces) {
    channel.wait_arrived(0);
    const auto* places = reinterpret_cast<const std::uint64_t*>(channel.at(0, channel.slot_of(0).scratch_at));
    for (std::uint64_t k = 0; k < pieces; ++k) {
        channel.wait_shown(0, 0, k + 1);
        expect(places[k % kPlaces] == piece_of(channel, k), "another piece");
        channel.raise_read(0, k + 1);
    }
}

}  // namespace

std::vector<Scenario> stream_scenarios() {
    auto make = [](const char* name, int ranks, int epochs, std::uint64_t pieces) -> Scenario {
        return {.name = name,
                .ranks = ranks,
                .looks = 1,
                .prepare = [=] { open_all(ranks, kYields); },
                .play =
                    [=](int rank) {
                        channel::Channel& channel = *g_channels[rank];
                        for (int e = 0; e < epochs; ++e) {
                            channel.begin_epoch();
                            if (rank == 0)
                                show_pieces(channel, ranks, pieces);
                            else
                                read_pieces(channel, pieces);
                            channel.raise(schedule::kDone);
                        }
                    }};
    };
    return {make("stream of 2", 2, 2, 4), make("stream to 2 readers", 3, 1, 3)};
}

}  // namespace coco::model
