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

#include "comm/comm.h"

namespace {

using namespace coco;
using comm::Comm, comm::Header, comm::Publish;

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
    if (turn % 3 == 0) return {Call::bcast, turn % kRanks, std::min(words, comm::kTapeBytes / 64)};
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
void show(Comm& comm, std::uint64_t words) {
    comm::Slot& slot = comm.open_slot();
    slot.publish = words * 8 <= comm::kInlineBytes ? Publish::inlined : Publish::staged;
    std::byte* block = slot.publish == Publish::inlined ? slot.inlined : comm.stage_bytes(words * 8);
    write(block, words, comm.epoch, comm.rank);
    if (slot.publish == Publish::staged) slot.scratch_at = comm.offset_of(block);
    comm.publish(slot);
}

int look(Comm& comm, std::int32_t peer, std::uint64_t words) {
    comm.wait_arrived(peer);
    const comm::Slot& slot = comm.slot_of(peer);
    const std::byte* block = slot.publish == Publish::inlined ? slot.inlined : comm.at(peer, slot.scratch_at);
    return wrong_in(block, words, comm.epoch, peer);
}

int pull(Comm& comm, std::int32_t leader, std::uint64_t words) {
    if (comm.rank != leader) return look(comm, leader, words);
    show(comm, words);
    return 0;
}

// As an allgather.
int exchange(Comm& comm, std::uint64_t words) {
    show(comm, words);
    int wrong = 0;
    for (std::int32_t peer : comm.mates) wrong += look(comm, peer, words);
    return wrong;
}

// On the root's tape.
int broadcast(Comm& comm, std::int32_t root, std::uint64_t words) {
    if (comm.rank != root) return wrong_in(comm.next_record(root).payload(), words, comm.epoch, root);
    Header header = Header::of(Publish::inlined, words * 8);
    Comm::Record record = comm.open_record(header);
    write(record.payload(), words, comm.epoch, root);
    comm.publish(record, header);
    return 0;
}

using Blocks = std::vector<std::unique_ptr<comm::Control>>;

void fill(Comm& comm, const Blocks& blocks, std::int32_t rank, const sync::WaitPolicy& waiting) {
    comm.rank = rank;
    comm.ranks = kRanks;
    comm.waiting = waiting;
    comm.control = blocks[rank].get();
    comm.segment = reinterpret_cast<std::byte*>(comm.control);
    for (std::int32_t r = 0; r < kRanks; ++r) {
        comm.peers.emplace_back();
        comm.peers[r].control = blocks[r].get();
        comm.peers[r].segment = reinterpret_cast<std::byte*>(blocks[r].get());
        if (r != rank) comm.mates.push_back(r);
    }
}

int play(const Blocks& blocks, std::int32_t rank, int calls, const sync::WaitPolicy& waiting) {
    Comm comm;
    fill(comm, blocks, rank, waiting);
    std::mt19937 random(7);
    int wrong = 0;
    for (int i = 0; i < calls; ++i) {
        Call call = draw(random, i);
        ++comm.epoch;
        wrong += call.kind == Call::bcast  ? broadcast(comm, call.leader, call.words)
                 : call.kind == Call::pull ? pull(comm, call.leader, call.words)
                                           : exchange(comm, call.words);
        comm.raise(schedule::kDone);
    }
    comm.control = nullptr;  // not of the pool to which the communicator would give it back
    return wrong;
}

int run(const char* name, int calls, const sync::WaitPolicy& waiting) {
    Blocks blocks;
    for (std::int32_t r = 0; r < kRanks; ++r) blocks.push_back(std::make_unique<comm::Control>());
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
