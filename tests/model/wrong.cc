// SPDX-License-Identifier: BSD-3-Clause
//
// Callers of a channel that do not do what it requires of them.
#include "ranks.h"

namespace coco::model {
namespace {

using channel::Header, channel::Publish, channel::Record;

// The slot is published before it is written.
void raise_first(channel::Channel& channel) {
    channel::Slot& slot = channel.open_slot();
    channel.publish(slot);
    slot.scratch_at = word_of(channel, channel.rank());
}

// The slot is written without asking whether it is still read.
void write_unasked(channel::Channel& channel) {
    channel::Slot& slot = const_cast<channel::Slot&>(channel.slot_of(channel.rank()));
    slot.scratch_at = word_of(channel, channel.rank());
    channel.publish(slot);
}

// The record is published before its payload is written.
void raise_record_first(channel::Channel& channel) {
    const Header header = Header::of(Publish::inlined, sizeof(std::uint64_t));
    const Record record = channel.open_record(header);
    channel.publish(record, header);
    *reinterpret_cast<std::uint64_t*>(record.payload()) = word_of(channel, channel.rank());
}

void read_slot(channel::Channel& channel) {
    channel.wait_arrived(0);
    expect_slot(channel, 0);
}

// The slot is read without waiting for it.
void read_slot_at_once(channel::Channel& channel) { expect_slot(channel, 0); }

void read_record(channel::Channel& channel) {
    const Record record = channel.next_record(0);
    expect(*reinterpret_cast<std::uint64_t*>(record.payload()) == word_of(channel, 0), "another payload");
}

void play(int rank, void (*write)(channel::Channel&), void (*read)(channel::Channel&)) {
    channel::Channel& channel = *g_channels[rank];
    for (std::uint64_t e = 0; e <= channel::kSlots; ++e) {
        channel.begin_epoch();
        rank == 0 ? write(channel) : read(channel);
        channel.raise(schedule::kDone);
    }
}

// The slot is read after the rank has said that it is done.
void play_done_too_early(int rank) {
    channel::Channel& channel = *g_channels[rank];
    for (std::uint64_t e = 0; e <= channel::kSlots; ++e) {
        channel.begin_epoch();
        if (rank == 0) show(channel);
        if (rank == 1) channel.wait_arrived(0);
        channel.raise(schedule::kDone);
        if (rank == 1) expect_slot(channel, 0);
    }
}

}  // namespace

std::vector<Scenario> wrong_scenarios() {
    auto make = [](const char* name, std::function<void(int)> play) -> Scenario {
        return {.name = name,
                .ranks = 2,
                .looks = 0,
                .prepare = [] { open_all(2, kYields); },
                .play = std::move(play)};
    };
    auto pull = [&](const char* name, void (*write)(channel::Channel&), void (*read)(channel::Channel&)) {
        return make(name, [=](int rank) { play(rank, write, read); });
    };
    return {
        pull("a slot is raised before it is written", raise_first, read_slot),
        pull("a slot is written while it is read", write_unasked, read_slot),
        pull("a slot is read before it is there", show, read_slot_at_once),
        pull("a record is raised before it is written", raise_record_first, read_record),
        make("a slot is read after kDone", play_done_too_early),
    };
}

}  // namespace coco::model
