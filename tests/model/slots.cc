// SPDX-License-Identifier: BSD-3-Clause
//
// Slots, milestones, and what they guard, over more epochs than there are slots.
#include "ranks.h"

namespace coco::model {
namespace {

// Each reads all others' slots, as an allgather.
void exchange(int rank, int epochs) {
    channel::Channel& channel = *g_channels[rank];
    for (int e = 0; e < epochs; ++e) {
        channel.begin_epoch();
        show(channel);
        for (std::int32_t peer : channel.mates()) {
            channel.wait_arrived(peer);
            expect_slot(channel, peer);
        }
        channel.raise(schedule::kDone);
    }
}

// The others read rank 0's, which waits for nobody but for the reuse of its slots.
void pull(int rank, int epochs) {
    channel::Channel& channel = *g_channels[rank];
    for (int e = 0; e < epochs; ++e) {
        channel.begin_epoch();
        if (rank == 0) {
            show(channel);
        } else {
            channel.wait_arrived(0);
            expect_slot(channel, 0);
        }
        channel.raise(schedule::kDone);
    }
}

std::uint64_t* g_buffer;

// Rank 0's buffer is read where it lies, and written again when its readers say that they are done.
void read_in_place(int rank, int epochs) {
    channel::Channel& channel = *g_channels[rank];
    for (int e = 0; e < epochs; ++e) {
        channel.begin_epoch();
        if (rank == 0) {
            *g_buffer = word_of(channel, 0);
            show(channel);
            channel.raise(schedule::kDone);
            for (std::int32_t peer : channel.mates()) channel.wait_milestone(peer, schedule::kDone);
        } else {
            channel.wait_arrived(0);
            expect(*g_buffer == word_of(channel, 0), "another call's buffer");
            channel.raise(schedule::kDone);
        }
    }
}

// Rank 0 writes two pieces, each with a milestone, into rank 1's buffer.
void push(int rank, int epochs) {
    constexpr schedule::Milestone kPieces[] = {1, 2};
    channel::Channel& channel = *g_channels[rank];
    for (int e = 0; e < epochs; ++e) {
        channel.begin_epoch();
        if (rank != 0) show(channel);
        for (schedule::Milestone piece : kPieces) {
            if (rank == 0) {
                channel.wait_arrived(1);
                g_buffer[piece] = word_of(channel, 0);
                channel.raise(piece);
            } else {
                channel.wait_milestone(0, piece);
                expect(g_buffer[piece] == word_of(channel, 0), "another call's piece");
            }
        }
        channel.raise(schedule::kDone);
    }
}

}  // namespace

std::vector<Scenario> slot_scenarios() {
    auto make = [](const char* name, int ranks, int epochs, int looks, const sync::WaitPolicy& waiting,
                   void (*play)(int, int)) -> Scenario {
        return {.name = name,
                .ranks = ranks,
                .looks = looks,
                .prepare =
                    [=] {
                        open_all(ranks, waiting);
                        g_buffer = static_cast<std::uint64_t*>(take_shared(ranks - 1, 64, 64));
                    },
                .play = [=](int rank) { play(rank, epochs); }};
    };
    return {
        make("exchange of 2", 2, 5, 2, kYields, exchange),
        make("exchange of 3", 3, 3, 1, kYields, exchange),
        make("pull by 1", 2, 5, 2, kYields, pull),
        make("pull by 1, spinning", 2, 3, 1, kSpins, pull),
        make("pull by 2", 3, 3, 1, kYields, pull),
        make("read in place", 2, 4, 2, kYields, read_in_place),
        make("read in place by 2", 3, 3, 1, kYields, read_in_place),
        make("push", 2, 3, 1, kYields, push),
    };
}

}  // namespace coco::model
