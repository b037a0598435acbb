// SPDX-License-Identifier: BSD-3-Clause
//
// Control blocks under the thread sanitizer: slots, the stage ring and the tape, as calls on a communicator
// use them. Threads stand in for ranks: the sanitizer sees one process. What is written over before its last
// reader is done, or read before it is there, is a race.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "channel/channel.h"

namespace {

using namespace coco;
using channel::Channel, channel::Header, channel::Publish;

constexpr std::int32_t kRanks = 4;
constexpr std::uint64_t kLongest = 6000;  // words of a block: laps of the rings are short against the turns

// One call, the same on all ranks.
struct Call {
    enum { bcast, pull, exchange } kind;
    std::int32_t leader;  // the root of a bcast; whose block all others pull
    std::uint64_t words;
};

// Turns of many calls of a kind: where only a leader is waited for it runs ahead, until something has to hold
// it back.
Call draw(std::mt19937& random, int number) {
    constexpr int kTurn = 100;
    std::uint64_t longest = random() % 2 == 0 ? 30 : kLongest, words = 1 + random() % longest;
    int turn = number / kTurn;
    if (turn % 3 == 0) return {Call::bcast, turn % kRanks, std::min(words, channel::kTapeBytes / 64)};
    return {turn % 3 == 1 ? Call::pull : Call::exchange, turn % kRanks, words};
}

std::uint64_t word_of(std::uint64_t epoch, std::int32_t rank, std::uint64_t i) {
    return epoch * 1000003 + static_cast<std::uint64_t>(rank) * 7919 + i;
}

void write(std::byte* to, std::uint64_t words, std::uint64_t epoch, std::int32_t rank) {
    for (std::uint64_t i = 0; i < words; ++i) {
        std::uint64_t word = word_of(epoch, rank, i);
        std::memcpy(to + i * sizeof word, &word, sizeof word);
    }
}

// Returns: how many words are not what `rank` wrote in this call.
int wrong_in(const std::byte* from, std::uint64_t words, std::uint64_t epoch, std::int32_t rank) {
    int wrong = 0;
    for (std::uint64_t i = 0; i < words; ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, from + i * sizeof word, sizeof word);
        wrong += word != word_of(epoch, rank, i);
    }
    return wrong;
}

// In a slot where the block fits, else in the stage ring.
void show(Channel& channel, std::uint64_t words) {
    channel::Slot& slot = channel.open_slot();
    slot.publish = words * 8 <= channel::kInlineBytes ? Publish::inlined : Publish::staged;
    std::byte* block = slot.publish == Publish::inlined ? slot.inlined : channel.stage_bytes(words * 8);
    write(block, words, channel.epoch(), channel.rank());
    if (slot.publish == Publish::staged) slot.scratch_at = channel.offset_of(block);
    channel.publish(slot);
}

int look(Channel& channel, std::int32_t peer, std::uint64_t words) {
    channel.wait_arrived(peer);
    const channel::Slot& slot = channel.slot_of(peer);
    const std::byte* block =
        slot.publish == Publish::inlined ? slot.inlined : channel.at(peer, slot.scratch_at);
    return wrong_in(block, words, channel.epoch(), peer);
}

int pull(Channel& channel, std::int32_t leader, std::uint64_t words) {
    if (channel.rank() != leader) return look(channel, leader, words);
    show(channel, words);
    return 0;
}

// As an allgather.
int exchange(Channel& channel, std::uint64_t words) {
    show(channel, words);
    int wrong = 0;
    for (std::int32_t peer : channel.mates()) wrong += look(channel, peer, words);
    return wrong;
}

// On the root's tape.
int broadcast(Channel& channel, std::int32_t root, std::uint64_t words) {
    if (channel.rank() != root)
        return wrong_in(channel.next_record(root).payload(), words, channel.epoch(), root);
    Header header = Header::of(Publish::inlined, words * 8);
    channel::Record record = channel.open_record(header);
    write(record.payload(), words, channel.epoch(), root);
    channel.publish(record, header);
    return 0;
}

using Blocks = std::vector<std::unique_ptr<channel::Control>>;

void open(Channel& channel, const Blocks& blocks, std::int32_t rank, const sync::WaitPolicy& waiting) {
    std::vector<channel::Peer> peers;
    std::vector<std::int32_t> mates;
    for (std::int32_t r = 0; r < kRanks; ++r) {
        peers.push_back(
            {.segment = reinterpret_cast<std::byte*>(blocks[r].get()), .control = blocks[r].get()});
        if (r != rank) mates.push_back(r);
    }
    channel.open(0, rank, std::move(peers), mates);
    channel.waiting = waiting;
}

int play(const Blocks& blocks, std::int32_t rank, int calls, const sync::WaitPolicy& waiting) {
    Channel channel;
    open(channel, blocks, rank, waiting);
    std::mt19937 random(7);
    int wrong = 0;
    for (int i = 0; i < calls; ++i) {
        Call call = draw(random, i);
        channel.begin_epoch();
        wrong += call.kind == Call::bcast  ? broadcast(channel, call.leader, call.words)
                 : call.kind == Call::pull ? pull(channel, call.leader, call.words)
                                           : exchange(channel, call.words);
        channel.raise(schedule::kDone);
    }
    return wrong;
}

int run(const char* name, int calls, const sync::WaitPolicy& waiting) {
    Blocks blocks;
    for (std::int32_t r = 0; r < kRanks; ++r) {
        blocks.push_back(std::make_unique<channel::Control>());
        blocks.back()->flag.value = schedule::kDone;  // as blocks of the pool are: epoch 0 is finished
    }
    int wrong[kRanks] = {};
    std::vector<std::thread> threads;
    for (std::int32_t r = 0; r < kRanks; ++r)
        threads.emplace_back([&, r] { wrong[r] = play(blocks, r, calls, waiting); });
    for (std::thread& t : threads) t.join();
    int sum = 0;
    for (int w : wrong) sum += w;
    std::printf("%s: %d calls, %d wrong\n", name, calls, sum);
    return sum;
}

}  // namespace

int main() {
    int wrong = run("spinning", 1200, {.spins = 100, .yields = 1000});
    wrong += run("yielding", 1200, {.spins = 0, .yields = 1000});
    wrong += run("sleeping", 600,
                 {.spins = 0, .yields = 1, .least_sleep_ns = 1'000'000, .most_sleep_ns = 4'000'000});
    return wrong == 0 ? 0 : 1;
}
