// SPDX-License-Identifier: BSD-3-Clause
#include "channel/channel.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/index.h"
#include "os/clock.h"
#include "os/cpu.h"

namespace coco::channel {

void Channel::open(std::uint64_t id, std::int32_t rank, std::vector<Peer> peers,
                   std::span<const std::int32_t> mates) {
    COCO_CHECK(rank >= 0 && base::index(rank) < peers.size(), "a channel's rank is one of its peers");
    COCO_CHECK(!is_open(), "a channel is closed before it is opened again");
    const Peer& own = peers[base::index(rank)];
    COCO_CHECK(own.control != nullptr, "a channel is opened with a control block");
    for (std::int32_t mate : mates) {
        COCO_CHECK(mate >= 0 && base::index(mate) < peers.size() && mate != rank,
                   "mates are other ranks of a channel");
        const Peer& peer = peers[base::index(mate)];
        COCO_CHECK(peer.control != nullptr || (peer.directory != nullptr && id != 0),
                   "a mate's control block is known, or can be found");
    }
    id_ = id;
    rank_ = rank;
    control_ = own.control;
    segment_ = own.segment;
    own_epoch_base_ = own.epoch_base;
    tape_ = Ring<kTapeBytes>(own.tape_at);
    stage_ = Ring<kStageBytes>();
    peers_ = std::move(peers);
    mates_.assign(mates.begin(), mates.end());
    epoch_ = done_epoch_ = 0;
    std::ranges::fill(slot_epoch_, 0u);
}

void Channel::hand_back(HandedBack calls) {
    COCO_CHECK(calls != HandedBack::none, "who has calls handed back says which");
    find(0);
    const Peer& first = peers_.front();
    // Relaxed: this rank's publishing releases it.
    first.control->handed_back.store((first.epoch_base + epoch_) << 2 | static_cast<std::uint64_t>(calls),
                                     std::memory_order_relaxed);
}

Control* Channel::close() { return std::exchange(control_, nullptr); }

std::vector<Pending> Channel::pending() const {
    std::vector<Pending> pending;
    for (std::int32_t r : mates_) {
        const Peer& p = peers_[base::index(r)];
        COCO_CHECK(p.control != nullptr, "the mates of a channel that ends are known");
        pending.push_back({&p.control->flag.value, milestone_value(p.epoch_base + epoch_, schedule::kDone)});
    }
    return pending;
}

std::uint64_t Channel::raised() const {
    std::uint64_t sum =
        control_->flag.value.load(std::memory_order_relaxed) + control_->tape_at + epoch_ * kTapeBytes;
    for (const Slot& slot : control_->slots) sum += slot.epoch.load(std::memory_order_relaxed);
    for (std::size_t r = 0; r < std::min<std::size_t>(peers_.size(), kNodeRanks); ++r)
        sum += control_->shown[r].load(std::memory_order_relaxed) +
               control_->read[r].load(std::memory_order_relaxed);
    return sum;
}

namespace {

// A short spin that asks for the lines behind the word again and again: the writer fills them before it
// raises the word, so that they are on their way when the word is seen. Returns: whether the word got there.
bool spin_fetching(const std::atomic<std::uint64_t>& word, std::uint64_t target, Prefetch prefetch) {
    constexpr int kSpins = 64;
    constexpr std::uint64_t kBytesMost = 1024;
    std::uint64_t bytes = std::min(prefetch.bytes, kBytesMost);
    for (int i = 0; i < kSpins; ++i) {
        for (std::uint64_t at = 0; at < bytes; at += os::kLeastLineBytes)
            __builtin_prefetch(prefetch.at + at);
        // Acquire: pairs with the raise of the word, as in sync::wait(): a wait may end here.
        if (word.load(std::memory_order_acquire) >= target) return true;
        os::pause();
    }
    return false;
}

}  // namespace

void Channel::wait_for(const std::atomic<std::uint64_t>& word, sync::Doorbell& bell, std::uint64_t target,
                       Prefetch prefetch) {
    std::uint64_t begin_ns = timed ? os::now_ns() : 0;
    if (waiting.spins == 0 || !spin_fetching(word, target, prefetch))
        sync::wait_slowly(word, bell, target, waiting);
    if (timed) wait_ns += os::now_ns() - begin_ns;
}

void Channel::wait_stream(std::int32_t owner, const std::atomic<std::uint64_t>& word, std::uint64_t pieces) {
    const Peer& p = peers_[base::index(owner)];
    COCO_CHECK_DEAR(p.control != nullptr, "who shows pieces has arrived");
    const std::uint64_t target = stream_value(p.epoch_base + epoch_, pieces);
    // Acquire: pairs with raise_shown() and raise_read() of the owner. The piece is read next, or written
    // over.
    if (word.load(std::memory_order_acquire) < target) wait_for(word, p.control->flag.doorbell, target);
}

void Channel::wait_milestone(std::int32_t peer, schedule::Milestone milestone) {
    find(peer);
    const Peer& p = peers_[base::index(peer)];
    std::uint64_t target = milestone_value(p.epoch_base + epoch_, milestone);
    sync::Flag& flag = p.control->flag;
    // Acquire: pairs with the peer's raise(). What it wrote before that milestone is read next, or, behind
    // kDone, what it has read is written.
    if (flag.value.load(std::memory_order_acquire) < target) wait_for(flag.value, flag.doorbell, target);
}

void Channel::look_at_all(std::uint64_t wanted) {
    std::uint64_t lowest = epoch_ - 1;  // of the last epochs finished, each by one rank; this one is our own
    for (std::int32_t r : mates_) {
        find(r);
        Peer& p = peers_[base::index(r)];
        if (p.done_epoch < wanted) look_how_far(p, wanted);
        lowest = std::min(lowest, p.done_epoch);
    }
    done_epoch_ = std::max(done_epoch_, lowest);
}

void Channel::look_how_far(Peer& p, std::uint64_t wanted) {
    sync::Flag& flag = p.control->flag;
    std::uint64_t target = milestone_value(p.epoch_base + wanted, schedule::kDone);
    // This load only tells whether to wait; what is relied on is acquired by the load below.
    const bool is_there = flag.value.load(std::memory_order_acquire) >= target;
    if (!is_there) wait_for(flag.value, flag.doorbell, target);
    // The flag shows the last milestone; kDone of an epoch is followed by milestones of the next. Acquire:
    // pairs with the peer's raise() that this reads from, which may be later than the one waited for: all
    // that the peer has read in epochs up to that is done, and the caller writes there. A load never sees
    // less than the one before it did.
    std::uint64_t value = flag.value.load(std::memory_order_acquire);
    COCO_CHECK_DEAR(value >> 20 >= p.epoch_base,
                    "a control block counts on from one communicator to the next");
    std::uint64_t at = (value >> 20) - p.epoch_base;
    p.done_epoch = (value & schedule::kDone) == schedule::kDone ? at : at - 1;
}

std::uint64_t Channel::known_done() const {
    std::uint64_t lowest = epoch_ - 1;
    for (std::int32_t r : mates_) lowest = std::min(lowest, peers_[base::index(r)].done_epoch);
    return std::max(done_epoch_, lowest);
}

std::byte* Channel::stage_bytes(std::uint64_t bytes) {
    COCO_CHECK(bytes != 0 && bytes <= kStageBytes, "what is staged fits into the stage ring");
    const std::uint64_t taken = os::line_up(bytes);
    if (stage_.may_end_lap()) [[unlikely]]
        stage_.end_lap(taken, known_done());
    const auto piece = stage_.take(taken, 0, epoch_);
    COCO_CHECK_DEAR(piece.wait_epoch < epoch_, "the stage is asked for once in an epoch");
    wait_all_done(piece.wait_epoch);
    return control_->stage + piece.begin;
}

Record Channel::open_record(Header header) {
    const std::uint64_t bytes = header.record_bytes();
    COCO_CHECK(bytes <= kTapeBytes / 4, "several records fit onto a tape");
    const std::uint64_t left_at = tape_.head();
    const auto piece = tape_.take(bytes, 8, epoch_);
    wait_all_done(piece.wait_epoch);
    std::atomic<std::uint64_t>* words = control_->tape;
    // Relaxed, both zeros: readers come to these words behind a record or a wrap that is raised later, by
    // release, and that they acquire in next_record(). By then coherence leaves them the zero or what was
    // stored after it.
    words[(piece.begin + bytes) / 8].store(0, std::memory_order_relaxed);
    if (piece.wrapped) {
        words[0].store(0, std::memory_order_relaxed);
        // The raise releases: it pairs with next_record(), which goes on to the zero at the begin.
        sync::raise(words[left_at / 8], control_->flag.doorbell, Header::kWrap);
    }
    control_->tape_at = tape_.head();
    return {words + piece.begin / 8};
}

namespace {

// Each look at a header that is not there yet takes the line away from the root, which is about to write it:
// readers that have caught up make every small bcast of a stream cost a line's way there and back. A reader
// that stays away for some pauses finds several records then. Each record that is there at the first look
// makes the next absence longer, each that is not halves it: where the root does not run ahead it stays at
// the least.
constexpr std::uint32_t kPausesLeast = 4, kPausesMost = 24, kPausesMore = 3;

void hold_back(Peer& root) {
    for (std::uint32_t i = 0; i < root.pauses; ++i) os::pause();
    root.pauses = std::max(root.pauses / 2, kPausesLeast);
}

}  // namespace

Record Channel::next_record(std::int32_t root) {
    find(root);
    Peer& p = peers_[base::index(root)];
    for (;;) {
        COCO_CHECK_DEAR(p.tape_at % 8 == 0 && p.tape_at < kTapeBytes, "a record begins on its tape");
        std::atomic<std::uint64_t>& word = p.control->tape[p.tape_at / 8];
        // A header is above 0 when it is there. Each of these loads may be the one that finds it; all
        // acquire, and pair with publish() and with the wrap's raise: the payload, and the zero behind it,
        // are read next. The word does not change again before this rank's kDone, so the last load reads from
        // the same store.
        if (word.load(std::memory_order_acquire) != 0) {
            p.pauses = std::min(p.pauses + kPausesMore, kPausesMost);
        } else {
            if (waiting.spins != 0) hold_back(p);
            if (word.load(std::memory_order_acquire) == 0) wait_for(word, p.control->flag.doorbell, 1);
        }
        Header header{word.load(std::memory_order_acquire)};
        if (header.word != Header::kWrap) {
            p.tape_at += header.record_bytes();
            COCO_CHECK_DEAR(p.tape_at < kTapeBytes, "a header follows a record on its tape");
            return {&word};
        }
        p.tape_at = 0;
    }
}

}  // namespace coco::channel
