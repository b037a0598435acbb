// SPDX-License-Identifier: BSD-3-Clause
//
// An exchange among the ranks of a node of which some have send buffers in private memory, or blocks with
// holes. Blocks in shared memory go from layout to layout in one copy. Private ones are read whole through
// the kernel, where it lets every rank read its mates' memory: one copy, as MPI libraries do it. Elsewhere,
// and where private blocks have holes, a rank shows its blocks piece by piece in a ring on its stage, while
// their receivers copy them out.
//
// Each rank fills and reads in one order. In a personal exchange it goes through the rounds 0, 1, ...; in
// round r it is paired with rank (r - own rank) mod ranks, to which it shows piece k of its block before it
// reads piece k of the other's. (So a piece that arrives may lie over the piece that was just shown:
// exchanges in place need no copy.) Where one block goes to all ranks a rank shows piece k, then reads piece
// k of each other rank.
//
// No deadlock: a rank shows a piece once the piece before it in that place of the ring was read, which comes
// earlier in that order, and reads a piece once it is shown, which comes earlier too. The first rank in that
// order can go on.
//
// A read that the kernel refuses, though it has allowed them before, is no reason to end the job: the rank
// has given up rights (setuid), a filter has come, or pages of the owner's are closed, which the owner's own
// signal handler opens. The reader asks the owner for pieces and raises kUnread in the place of kDone. Once a
// rank has read all that it can it waits for its readers to have come so far, in the rounds of a personal
// exchange, and shows pieces to those who ask.
//
// Used by exec's flights once all ranks have agreed. Thread safety: that of the lane. Fails: no.
#pragma once
#include <cstdint>
#include <vector>
#include "base/index.h"
#include "blocks/publish.h"
#include "blocks/side.h"
#include "channel/channel.h"
#include "os/cpu.h"

namespace coco::exec {

// Where the blocks of a call are, by peer. Addresses are of this process.
class PipedBlocks {
  public:
    virtual blocks::Block owed_to(std::int32_t peer) = 0;
    // Where this rank receives a peer's block, and how much of it.
    virtual blocks::Block room_for(std::int32_t peer) = 0;
    // The block that a peer has for this rank: its length, and its address, in private memory that of the
    // peer's process. Null: it was copied already.
    virtual blocks::Block shown_by(std::int32_t peer) = 0;
    // A block is longer than its room.
    virtual void note_truncated() = 0;

  protected:
    ~PipedBlocks() = default;
};

class Pipe {
  public:
    // Pieces fit into a level-2 cache, together with what they are copied from and to.
    static constexpr std::uint64_t kPieceBytes = channel::kStageBytes / 8, kPieces = 4;
    static constexpr std::uint64_t kRingBytes = kPieceBytes * kPieces;
    static_assert(kRingBytes <= channel::kStageBytes);

    // What a send side needs on the stage: a ring, and room for its layouts.
    static std::uint64_t ring_bytes(const blocks::Side& send) {
        return send.where == blocks::Where::pipe && send.piped != channel::Piped::shared ? kRingBytes : 0;
    }
    static std::uint64_t layouts_bytes(const blocks::Side& send, const blocks::Buffer& buffer) {
        const bool shows = send.where == blocks::Where::pipe && send.piped == channel::Piped::shared;
        return shows ? os::line_up(blocks::layouts_bytes(buffer)) : 0;
    }

    struct Exchange {
        std::int32_t ranks;
        bool personal;           // each receiver gets another block
        bool in_place = false;   // into the memory where this rank's blocks are
        bool streaming = false;  // whole blocks are copied by streaming stores
        // How this rank's blocks are read, and, for private ones, kRingBytes on the stage.
        channel::Piped piped = channel::Piped::shared;
        std::byte* ring = nullptr;
    };
    // Requires: all ranks have arrived.
    Pipe(channel::Channel& channel, const Exchange& exchange);
    // Shows all blocks of this rank and receives all that it is owed, raises kDone, and waits until nobody
    // reads this rank's buffer any more. Requires: all ranks take part.
    void run(PipedBlocks& blocks);

  private:
    struct Shown {
        std::int32_t peer;
        std::uint64_t pieces;  // that the peer has read when this place is free
    };

    bool is_piped(std::int32_t peer, channel::Piped piped) const {
        const channel::Slot& slot = channel_.slot_of(peer);
        return peer != channel_.rank() && slot.publish == channel::Publish::piped &&
               slot.direct.piped == piped;
    }
    bool is_private(std::int32_t peer) const { return is_piped(peer, channel::Piped::address); }
    bool comes_in_pieces(std::int32_t peer) const {
        return is_piped(peer, channel::Piped::pieces) || (!by_kernel_ && is_private(peer));
    }
    void exchange_pairs(PipedBlocks& blocks);
    void exchange_for_all(PipedBlocks& blocks);
    void exchange_pieces(std::int32_t peer, std::uint64_t shown, std::uint64_t received, PipedBlocks& blocks);
    void say_how_far();
    void meet_readers(PipedBlocks& blocks);
    bool is_unread(std::int32_t peer) const;
    std::int32_t partner() const { return (round_ - channel_.rank() + ranks_) % ranks_; }
    void show(std::int32_t peer, blocks::Block block, std::uint64_t piece);
    void wait_until_free(std::uint64_t place);
    void read(std::int32_t peer, blocks::Block from, std::uint64_t piece, PipedBlocks& blocks);
    void copy_whole(std::int32_t peer, PipedBlocks& blocks);
    std::uint64_t most_pieces(PipedBlocks& blocks) const;
    std::uint64_t place_of(std::uint64_t piece) const {
        return (piece + (goes_by_pairs_ ? base::index(round_) : 0)) % kPieces;
    }

    channel::Channel& channel_;
    const std::int32_t ranks_;
    const bool personal_, streaming_;
    const bool by_kernel_;  // private memory is read through the kernel
    const bool
        is_read_whole_;  // this rank's blocks are read where they are, so that readers have to be waited for
    std::byte* const own_ring_;  // null: nobody can ask for pieces
    std::byte* ring_;            // null: this rank shows no pieces
    bool goes_by_pairs_;
    std::vector<std::int32_t> unread_;  // peers whose blocks the kernel has refused
    std::int32_t round_ = 0;            // pairs: of the partner
    Shown shown_[kPieces] = {};
    std::vector<std::byte> copied_;  // room for what is scattered in short runs
};

}  // namespace coco::exec
