// SPDX-License-Identifier: BSD-3-Clause
//
// The state that ranks of one node share in order to run one call after another: their control blocks, the
// number of the call that runs (its epoch), and the waits for one another. A channel knows its peers by rank
// and knows no MPI.
//
// Called by comm, which opens and closes it, and by exec, which runs one call at a time on it. A communicator
// on which several calls are under way at once has a channel for each.
//
// Thread safety: one thread at a time uses a channel. Process safety: the owner alone writes its control
// block, except for the counts of sleepers and of leavers and the call handed back; what others read there is
// published by release stores.
//
// Invariants: epochs count 1, 2, 3, ... alike on all ranks of the channel. A rank begins an epoch after it
// has raised kDone of the epoch before. What a peer may still read is not written before that peer is known
// to have finished the epoch in which it reads.
//
// Waits: a wait returns once what it waits for is there. Meanwhile it calls the hook of `waiting` again and
// again; the hook may switch to another stack, where other work goes on (decision 20).
//
// Fails: never. A peer that ends while others wait for it is the launcher's affair.
#pragma once
#include <sys/uio.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/index.h"
#include "channel/control.h"
#include "channel/control_pool.h"
#include "channel/tape.h"
#include "heap/segment.h"
#include "os/process.h"
#include "schedule/step.h"
#include "sync/flag.h"

namespace coco::channel {

inline constexpr std::atomic<std::uint64_t> kNeverGrows{0};

// A peer of the node as this rank sees it.
struct Peer {
    std::byte* segment = nullptr;  // the begin of its segment in this process
    // How often the owner has mapped more of its segment, and the number that this process has followed
    // (heap/segment.h).
    const std::atomic<std::uint64_t>* growths = &kNeverGrows;
    mutable std::uint64_t followed = 0;
    Control* control = nullptr;      // null: not found yet; then it is looked up in `directory`
    Directory* directory = nullptr;  // where the peer shows its control block; null: the block is known
    std::uint64_t epoch_base = 0;    // the epochs of its block run ahead of the channel's by this
    std::uint64_t done_epoch = 0;    // it is known to have finished this epoch
    std::uint64_t tape_at = 0;       // where its next record will be
    std::uint32_t pauses = 0;        // how long to stay away from its tape when there is no record yet
};

// Bytes that are read next, once what is waited for is there: they are fetched while waiting.
struct Prefetch {
    const std::byte* at = nullptr;
    std::uint64_t bytes = 0;
};

// A record of a tape.
struct Record {
    std::atomic<std::uint64_t>* header = nullptr;  // null: there is none yet
    std::byte* payload() const { return reinterpret_cast<std::byte*>(header + 1); }
};

// No process reads another one's private memory; or each read by this process whose number is a multiple of
// this one is refused (0: none). For tests.
extern bool g_never_reads;
extern std::atomic<std::uint32_t> g_refused_reads;

class Channel {
  public:
    // Makes the channel ready for epoch 1. id: the identity by which peers find each other's control blocks
    // in their directories; 0 where all blocks are known. peers: by rank, this one included; only those on
    // this node are looked at. mates: the other ranks of this node. Requires: the own peer has its control
    // block.
    void open(std::uint64_t id, std::int32_t rank, std::vector<Peer> peers,
              std::span<const std::int32_t> mates);
    bool is_open() const { return control_ != nullptr; }
    // Forgets the control block, which goes back to the pool by its caller. Returns: that block.
    Control* close();
    // The flags that must be raised so far before anybody may use this rank's control block for other calls.
    std::vector<Pending> pending() const;

    std::uint64_t id() const { return id_; }
    std::int32_t rank() const { return rank_; }
    std::span<const std::int32_t> mates() const { return mates_; }
    // A number that grows whenever this rank raises a word that others may wait for. For tests.
    std::uint64_t raised() const;
    // The number of this rank's control block among the process's: no two channels that are open have the
    // same.
    std::uint64_t control_number() const { return control_->number; }
    std::uint64_t epoch() const { return epoch_; }
    void begin_epoch() {
        COCO_CHECK_DEAR(has_finished(), "a rank begins an epoch after it has finished the one before");
        ++epoch_;
    }

    // The address in this process of an offset in `peer`'s segment.
    std::byte* at(std::int32_t peer, std::uint64_t offset) const {
        COCO_CHECK_DEAR(peer >= 0 && base::index(peer) < peers_.size(), "a peer is one of the ranks");
        const Peer& p = peers_[base::index(peer)];
        // Relaxed: whoever has shown the offset has mapped what lies there before, and this rank has acquired
        // that.
        if (p.growths->load(std::memory_order_relaxed) != p.followed) [[unlikely]]
            p.followed = heap::follow_growth(p.segment);
        return base::displaced(p.segment, static_cast<std::int64_t>(offset));
    }
    // The offset of an address in this rank's segment. Any address is allowed; only addresses in the segment
    // give offsets that peers can use.
    std::uint64_t offset_of(const void* address) const {
        return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(segment_);
    }

    // A peer's slot of this epoch. Requires: the peer has arrived, or at least has been found.
    const Slot& slot_of(std::int32_t peer) const {
        COCO_CHECK_DEAR(peer >= 0 && base::index(peer) < peers_.size(), "a peer is one of the ranks");
        const Peer& p = peers_[base::index(peer)];
        COCO_CHECK_DEAR(p.control != nullptr, "a peer with a slot was found");
        return p.control->slots[(p.epoch_base + epoch_) % kSlots];
    }
    // This rank's slot, ready to be written: waits until all who may read its last content are done.
    // Requires: it is opened once in an epoch.
    Slot& open_slot() {
        COCO_CHECK_DEAR(is_open() && epoch_ != 0, "a slot is opened in a call");
        std::uint64_t& last = slot_epoch_[epoch_ % kSlots];
        COCO_CHECK_DEAR(last < epoch_, "a slot is opened once in an epoch");
        wait_all_done(last);
        last = epoch_;
        return control_->slots[(own_epoch_base_ + epoch_) % kSlots];
    }
    // Publishes the slot: what it says is seen by all who wait for this rank to arrive. The raise releases,
    // and pairs with the loads of wait_arrived().
    void publish(Slot& slot) {
        COCO_CHECK_DEAR(&slot == &control_->slots[(own_epoch_base_ + epoch_) % kSlots],
                        "a rank publishes its slot of this epoch");
        sync::raise(slot.epoch, control_->flag.doorbell, own_epoch_base_ + epoch_);
    }
    // `bytes` of this rank's stage ring for this epoch; waits until nobody reads what was there. Requires:
    // bytes <= kStageBytes; it is asked for once in an epoch.
    std::byte* stage_bytes(std::uint64_t bytes);

    // Which calls all ranks hand back, as one of them has asked for.
    enum class HandedBack : std::uint8_t { none, later, this_and_later };
    // Has all ranks hand back the calls from this epoch's or the next one's on. Requires: an exchange among
    // all ranks, in which this rank has published nothing yet; all who ask for the same epoch ask for the
    // same.
    void hand_back(HandedBack calls);
    // Whether a rank has asked for that in this epoch. Requires: this rank has received what all ranks owe it
    // in this epoch: so it knows all that any rank wrote before it published.
    HandedBack handed_back() {
        find(0);
        const Peer& first = peers_.front();
        // Relaxed: the write happened before.
        const std::uint64_t asked = first.control->handed_back.load(std::memory_order_relaxed);
        return asked >> 2 == first.epoch_base + epoch_ ? static_cast<HandedBack>(asked & 3)
                                                       : HandedBack::none;
    }

    // Waits for a peer to publish its slot of this epoch. prefetch_of: tells what to fetch meanwhile; called
    // once the peer is found.
    template <class PrefetchOf>
    void wait_arrived(std::int32_t peer, PrefetchOf prefetch_of) {
        find(peer);
        Peer& p = peers_[base::index(peer)];
        const std::uint64_t target = p.epoch_base + epoch_;
        const std::atomic<std::uint64_t>& word = slot_of(peer).epoch;
        // Acquire: pairs with publish(). The slot, and what it names on the stage, is read next. The owner
        // writes the slot anew only after this rank's kDone, so this reads from this epoch's store or from an
        // older one.
        if (word.load(std::memory_order_acquire) < target)
            wait_for(word, p.control->flag.doorbell, target, prefetch_of());
        // A rank that is in this epoch has finished the one before.
        p.done_epoch = epoch_ - 1;
    }
    void wait_arrived(std::int32_t peer) {
        wait_arrived(peer, [] { return Prefetch{}; });
    }
    // What rank 0 told as it showed its control block: waits for that. Requires: rank 0 is on this node, and
    // comes to a call that this rank has come to.
    std::span<const std::int64_t> told() {
        find(0);
        return peers_.front().control->told;
    }
    // Waits for a peer to come to a milestone of this epoch. kArrived may be waited for only where the peer
    // raises it, as in bcasts, and does not publish a slot.
    void wait_milestone(std::int32_t peer, schedule::Milestone milestone);
    // Waits until all ranks of the node have finished `epoch`.
    void wait_all_done(std::uint64_t epoch) {
        COCO_CHECK_DEAR(epoch <= epoch_, "nobody waits for the end of calls to come");
        if (done_epoch_ < epoch) look_at_all(epoch);
    }
    // The raise releases: with kDone also what this rank has read of others, which they then may write. It
    // pairs with wait_milestone(), look_how_far(), and with the pool's is_over().
    void raise(schedule::Milestone milestone) {
        COCO_CHECK_DEAR(!has_finished(), "a rank raises nothing after kDone");
        sync::raise(control_->flag.value, control_->flag.doorbell,
                    milestone_value(own_epoch_base_ + epoch_, milestone));
    }

    // Streams: pieces of data that a rank shows another in this epoch, one after the other, in memory that
    // both know. peer: for whom; this rank itself stands for all. The raise releases the piece, and pairs
    // with wait_shown(). Requires, of these four: at most kNodeRanks ranks, fewer than kStreamPieces
    // pieces, counts that only grow.
    void raise_shown(std::int32_t peer, std::uint64_t pieces) {
        COCO_CHECK_DEAR(peers_.size() <= kNodeRanks, "a channel with streams has a bounded number of ranks");
        COCO_CHECK_DEAR(peer >= 0 && base::index(peer) < peers_.size(),
                        "a stream is between two of the ranks");
        sync::raise(control_->shown[peer], control_->flag.doorbell,
                    stream_value(own_epoch_base_ + epoch_, pieces));
    }
    // Waits until `owner` has shown `to` so many pieces. Requires: the owner has arrived.
    void wait_shown(std::int32_t owner, std::int32_t to, std::uint64_t pieces) {
        COCO_CHECK_DEAR(peers_.size() <= kNodeRanks, "a channel with streams has a bounded number of ranks");
        COCO_CHECK_DEAR(owner >= 0 && base::index(owner) < peers_.size(),
                        "a stream is between two of the ranks");
        COCO_CHECK_DEAR(to >= 0 && base::index(to) < peers_.size(), "a stream is between two of the ranks");
        wait_stream(owner, peers_[base::index(owner)].control->shown[to], pieces);
    }
    // This rank has read so many pieces of `owner`'s: they may be written over. The raise releases the reads,
    // and pairs with wait_read().
    void raise_read(std::int32_t owner, std::uint64_t pieces) {
        COCO_CHECK_DEAR(peers_.size() <= kNodeRanks, "a channel with streams has a bounded number of ranks");
        COCO_CHECK_DEAR(owner >= 0 && base::index(owner) < peers_.size(),
                        "a stream is between two of the ranks");
        sync::raise(control_->read[owner], control_->flag.doorbell,
                    stream_value(own_epoch_base_ + epoch_, pieces));
    }
    // Waits until `reader` has read so many pieces of this rank's. Requires: the reader has arrived.
    void wait_read(std::int32_t reader, std::uint64_t pieces) {
        COCO_CHECK_DEAR(peers_.size() <= kNodeRanks, "a channel with streams has a bounded number of ranks");
        COCO_CHECK_DEAR(reader >= 0 && base::index(reader) < peers_.size(),
                        "a stream is between two of the ranks");
        wait_stream(reader, peers_[base::index(reader)].control->read[rank_], pieces);
    }

    // Whether this process can read the private memory of all its mates, as the kernel allows. Found out
    // once, when all of them are known; false until then.
    bool can_read_mates() {
        return reads_mates_ == Answer::yes || (reads_mates_ == Answer::unknown && try_reading());
    }
    // Whether the kernel refuses that, for good.
    bool is_refused_reads() { return !can_read_mates() && reads_mates_ == Answer::no; }
    // Whether all ranks have said in their slots of this epoch that they can. Requires: all have arrived.
    bool can_all_read() const;
    // Copies from an address of a peer's process. Requires: can_all_read(), and the peer is in this call.
    // Returns: false, with errno, where the kernel refuses now: for good, unless a page is out of reach
    // (EFAULT); a part may be copied.
    bool read_private(std::int32_t peer, const std::byte* from, std::span<const iovec> to);
    // Says to peers that this thread is in a call: they read this process's memory by its number.
    void show_thread() { control_->thread.store(os::own_thread(), std::memory_order_relaxed); }
    // Streams of a rank that could not read a peer's memory: it asks for pieces before it raises kUnread.
    void ask_for_pieces(std::int32_t owner) { raise_read(owner, 0); }
    // Requires: the reader has raised kUnread, and has read no pieces of this rank's in this epoch before.
    bool is_asked_by(std::int32_t reader) const {
        COCO_CHECK_DEAR(reader >= 0 && base::index(reader) < peers_.size(),
                        "a stream is between two of the ranks");
        const Peer& p = peers_[base::index(reader)];
        // Relaxed: kUnread was acquired.
        return p.control->read[rank_].load(std::memory_order_relaxed) >=
               stream_value(p.epoch_base + epoch_, 0);
    }

    // Room for a record of this epoch on this rank's tape; waits until nobody reads what was there. Requires:
    // record_bytes <= kTapeBytes / 4.
    Record open_record(Header header);
    // Publishes a record that open_record() gave. The raise releases, and pairs with the loads of
    // next_record().
    void publish(Record record, Header header) {
        COCO_CHECK_DEAR(record.header != nullptr, "a record is published that was opened");
        sync::raise(*record.header, control_->flag.doorbell, header.of_call(epoch_).word);
    }
    // Waits for the next record of `root`'s tape and steps over it. Nothing is fetched ahead while waiting:
    // the root is writing those lines (bcast of 1 KiB on 2 ranks: 0.30 us without, 0.96 us with).
    Record next_record(std::int32_t root);

    // How this rank waits. Set before the first epoch.
    sync::WaitPolicy waiting;
    // While calls are counted: the time that waits take is added up here.
    bool timed = false;
    std::uint64_t wait_ns = 0;

  private:
    // Whether this rank has raised kDone of its last epoch.
    bool has_finished() const {
        // Relaxed: only this rank writes the word.
        return control_->flag.value.load(std::memory_order_relaxed) >=
               milestone_value(own_epoch_base_ + epoch_, schedule::kDone);
    }

    // Finds a peer's control block, where that is not known yet.
    void find(std::int32_t peer) {
        COCO_CHECK_DEAR(peer >= 0 && base::index(peer) < peers_.size(), "a peer is one of the ranks");
        if (peers_[base::index(peer)].control == nullptr) [[unlikely]]
            find_peer(peer);
    }
    void find_peer(std::int32_t peer);
    // Waits until all ranks of the node have finished `wanted`, and notes how far they are.
    void look_at_all(std::uint64_t wanted);
    // The last epoch that this rank knows all ranks of the node to have finished, without a look at their
    // flags.
    std::uint64_t known_done() const;
    // Waits until the peer has finished call `wanted`, and notes how far it is.
    void look_how_far(Peer& peer, std::uint64_t wanted);
    void wait_for(const std::atomic<std::uint64_t>& word, sync::Doorbell& bell, std::uint64_t target,
                  Prefetch prefetch = {});
    bool try_reading();
    // Waits for a count of a stream that `owner` raises.
    void wait_stream(std::int32_t owner, const std::atomic<std::uint64_t>& word, std::uint64_t pieces);

    enum class Answer : std::uint8_t { unknown, no, yes };

    Control* control_ = nullptr;
    std::byte* segment_ = nullptr;
    std::uint64_t epoch_ = 0;  // the epoch of the last call begun
    std::uint64_t own_epoch_base_ = 0;
    std::vector<Peer> peers_;          // by rank
    std::vector<std::int32_t> mates_;  // the other ranks of this node
    std::uint64_t id_ = 0;
    std::int32_t rank_ = 0;
    Answer reads_mates_ = Answer::unknown;
    std::uint64_t done_epoch_ = 0;           // every rank of the node is known to have finished this epoch
    std::uint64_t slot_epoch_[kSlots] = {};  // which epoch each of the own slots was last used for
    Ring<kStageBytes> stage_;
    Ring<kTapeBytes> tape_;
};

}  // namespace coco::channel
