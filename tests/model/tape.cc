// SPDX-License-Identifier: BSD-3-Clause
//
// A root's tape: the fourth record wraps, and those behind it lie where older ones were.
#include "ranks.h"

namespace coco::model {
namespace {

using channel::Header, channel::Publish, channel::Record;

std::uint64_t& payload_of(const Record& record) {
    return *reinterpret_cast<std::uint64_t*>(record.payload());
}

void write_record(channel::Channel& channel) {
    const Header header = Header::of(Publish::inlined, sizeof(std::uint64_t));
    const Record record = channel.open_record(header);
    payload_of(record) = word_of(channel, channel.rank());
    channel.publish(record, header);
}

void read_record(channel::Channel& channel, int root) {
    const Record record = channel.next_record(root);
    const Header header{record.header->load(std::memory_order_relaxed)};
    expect(header.is_of_call(channel.epoch()), "another call's record");
    expect(payload_of(record) == word_of(channel, root), "another record's payload");
}

void broadcast(int rank, int epochs) {
    channel::Channel& channel = *g_channels[rank];
    for (int e = 0; e < epochs; ++e) {
        channel.begin_epoch();
        if (rank == 0)
            write_record(channel);
        else
            read_record(channel, 0);
        channel.raise(schedule::kDone);
    }
}

}  // namespace

std::vector<Scenario> tape_scenarios() {
    auto make = [](const char* name, int ranks, int epochs, int looks,
                   const sync::WaitPolicy& waiting) -> Scenario {
        return {.name = name,
                .ranks = ranks,
                .looks = looks,
                .prepare = [=] { open_all(ranks, waiting); },
                .play = [=](int rank) { broadcast(rank, epochs); }};
    };
    return {
        make("tape of 2", 2, 5, 1, kYields),
        make("tape of 2, spinning", 2, 4, 2, kSpins),
        make("tape of 3", 3, 4, 0, kYields),
    };
}

}  // namespace coco::model
