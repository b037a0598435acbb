// SPDX-License-Identifier: BSD-3-Clause
#include "exec/pipe.h"

#include <algorithm>

#include "base/check.h"
#include "base/index.h"
#include "blocks/copy_block.h"
#include "exec/delay.h"
#include "exec/kernel_read.h"

namespace coco::exec {

using blocks::Block;

namespace {

std::uint64_t pieces_of(std::uint64_t bytes) { return (bytes + Pipe::kPieceBytes - 1) / Pipe::kPieceBytes; }

// How much of piece `piece` there is in a block of `bytes`.
std::uint64_t piece_bytes(std::uint64_t bytes, std::uint64_t piece) {
    const std::uint64_t begin = piece * Pipe::kPieceBytes;
    return bytes > begin ? std::min(bytes - begin, Pipe::kPieceBytes) : 0;
}

}  // namespace

// In place a rank's blocks are written over by the ones that come: only pieces are safe.
Pipe::Pipe(channel::Channel& channel, const Exchange& exchange)
    : channel_(channel),
      ranks_(exchange.ranks),
      personal_(exchange.personal),
      streaming_(exchange.streaming),
      by_kernel_(!(exchange.in_place && personal_) && channel.can_all_read()),
      is_read_whole_(exchange.ring == nullptr || (by_kernel_ && exchange.piped == channel::Piped::address)),
      own_ring_(exchange.ring),
      ring_(is_read_whole_ ? nullptr : own_ring_),
      goes_by_pairs_(personal_) {
    COCO_CHECK_DEAR(ranks_ > 0 && base::index(ranks_) <= channel::kNodeRanks,
                    "a pipe has a bounded number of ranks");
    COCO_CHECK_DEAR(exchange.piped == channel::Piped::shared || own_ring_ != nullptr,
                    "what is not in shared memory has a ring");
}

void Pipe::run(PipedBlocks& blocks) {
    if (personal_)
        exchange_pairs(blocks);
    else
        exchange_for_all(blocks);
    say_how_far();
    meet_readers(blocks);
}

void Pipe::exchange_pairs(PipedBlocks& blocks) {
    for (round_ = 0; round_ < ranks_; ++round_) {
        const std::int32_t peer = partner();
        if (peer == channel_.rank()) {
            copy_whole(peer, blocks);
            continue;
        }
        const std::uint64_t shown = ring_ != nullptr ? pieces_of(blocks.owed_to(peer).bytes) : 0;
        const std::uint64_t received = comes_in_pieces(peer) ? pieces_of(blocks.shown_by(peer).bytes) : 0;
        exchange_pieces(peer, shown, received, blocks);
        if (!comes_in_pieces(peer)) copy_whole(peer, blocks);
    }
}

// So many pieces of the block that is owed to a partner, and of the one that it owes.
void Pipe::exchange_pieces(std::int32_t peer, std::uint64_t shown, std::uint64_t received,
                           PipedBlocks& blocks) {
    for (std::uint64_t piece = 0; piece < std::max(shown, received); ++piece) {
        if (piece < shown) show(peer, blocks.owed_to(peer), piece);
        if (piece < received) read(peer, blocks.shown_by(peer), piece, blocks);
    }
}

void Pipe::say_how_far() {
    for (const std::int32_t owner : unread_) channel_.ask_for_pieces(owner);
    channel_.raise(unread_.empty() ? schedule::kDone : schedule::kUnread);
    goes_by_pairs_ = true;
    if (is_read_whole_) ring_ = own_ring_;
}

bool Pipe::is_unread(std::int32_t peer) const { return std::ranges::find(unread_, peer) != unread_.end(); }

// Nobody reads a block of nothing. Readers that came no farther than kUnread are not waited for again: they
// read what this rank shows them.
void Pipe::meet_readers(PipedBlocks& blocks) {
    for (round_ = 0; round_ < ranks_; ++round_) {
        const std::int32_t peer = partner();
        if (peer == channel_.rank()) continue;
        if (is_read_whole_ && blocks.owed_to(peer).bytes != 0)
            channel_.wait_milestone(peer, by_kernel_ ? schedule::kUnread : schedule::kDone);
        const bool shows = is_read_whole_ && by_kernel_ && own_ring_ != nullptr && channel_.is_asked_by(peer);
        const std::uint64_t shown = shows ? pieces_of(blocks.owed_to(peer).bytes) : 0;
        const std::uint64_t received = is_unread(peer) ? pieces_of(blocks.shown_by(peer).bytes) : 0;
        exchange_pieces(peer, shown, received, blocks);
    }
    if (!unread_.empty()) channel_.raise(schedule::kDone);
}

void Pipe::exchange_for_all(PipedBlocks& blocks) {
    const std::int32_t self = channel_.rank();
    // Each begins with itself, so that not all read one rank at a time.
    for (std::int32_t i = 0; i < ranks_; ++i)
        if (const std::int32_t peer = (self + i) % ranks_; peer == self || !comes_in_pieces(peer))
            copy_whole(peer, blocks);
    const Block owed = blocks.owed_to(self);
    const std::uint64_t shown = ring_ != nullptr ? pieces_of(owed.bytes) : 0, all = most_pieces(blocks);
    for (std::uint64_t piece = 0; piece < all; ++piece) {
        if (piece < shown) show(self, owed, piece);
        for (std::int32_t i = 1; i < ranks_; ++i) {
            const std::int32_t peer = (self + i) % ranks_;
            const Block from = blocks.shown_by(peer);
            if (comes_in_pieces(peer) && piece < pieces_of(from.bytes)) read(peer, from, piece, blocks);
        }
    }
}

// Of the longest block that comes in pieces, this rank's included.
std::uint64_t Pipe::most_pieces(PipedBlocks& blocks) const {
    const std::int32_t self = channel_.rank();
    std::uint64_t most = ring_ != nullptr ? pieces_of(blocks.owed_to(self).bytes) : 0;
    for (std::int32_t peer = 0; peer < ranks_; ++peer)
        if (peer != self && comes_in_pieces(peer))
            most = std::max(most, pieces_of(blocks.shown_by(peer).bytes));
    return most;
}

// Waits until what a place of the ring holds has been read.
void Pipe::wait_until_free(std::uint64_t place) {
    COCO_CHECK_DEAR(place < kPieces, "a piece has a place in the ring");
    const Shown& last = shown_[place];
    if (last.pieces == 0) return;
    if (goes_by_pairs_) return channel_.wait_read(last.peer, last.pieces);
    for (std::int32_t reader = 0; reader < ranks_; ++reader)
        if (reader != channel_.rank()) channel_.wait_read(reader, last.pieces);
}

// Shows a piece of the block. peer: this rank itself stands for all.
void Pipe::show(std::int32_t peer, Block block, std::uint64_t piece) {
    COCO_CHECK_DEAR(ring_ != nullptr, "pieces are shown in a ring");
    const std::uint64_t place = place_of(piece);
    wait_until_free(place);
    delay_if_asked();
    blocks::copy_data({ring_ + place * kPieceBytes}, {block.at, block.layout, piece * kPieceBytes},
                      piece_bytes(block.bytes, piece));
    shown_[place] = {peer, piece + 1};
    channel_.raise_shown(peer, piece + 1);
}

// Receives a piece of a peer's block.
void Pipe::read(std::int32_t peer, Block from, std::uint64_t piece, PipedBlocks& blocks) {
    COCO_CHECK_DEAR(comes_in_pieces(peer) || is_unread(peer), "pieces are read where they are shown");
    channel_.wait_shown(peer, goes_by_pairs_ ? channel_.rank() : peer, piece + 1);
    delay_if_asked();
    const Block room = blocks.room_for(peer);
    if (from.bytes > room.bytes) blocks.note_truncated();
    const std::uint64_t bytes = std::min(piece_bytes(from.bytes, piece), piece_bytes(room.bytes, piece));
    const std::byte* ring = channel_.at(peer, channel_.slot_of(peer).direct.ring_at);
    blocks::copy_data({room.at, room.layout, piece * kPieceBytes}, {ring + place_of(piece) * kPieceBytes},
                      bytes);
    channel_.raise_read(peer, piece + 1);
}

void Pipe::copy_whole(std::int32_t peer, PipedBlocks& blocks) {
    const Block from = peer == channel_.rank() ? blocks.owed_to(peer) : blocks.shown_by(peer);
    const Block to = blocks.room_for(peer);
    if (from.at == nullptr) return;
    if (from.bytes > to.bytes) blocks.note_truncated();
    const std::uint64_t bytes = std::min(from.bytes, to.bytes);
    if (bytes == 0) return;
    if (is_private(peer)) {
        if (!read_through_kernel(channel_, peer, from.at, to, bytes, copied_)) unread_.push_back(peer);
        return;
    }
    if (from.at == to.at) return;
    if (from.layout.words != nullptr || to.layout.words != nullptr)
        return blocks::copy_data({to.at, to.layout}, {from.at, from.layout}, bytes, streaming_);
    (streaming_ ? blocks::copy_streaming : blocks::copy_block)(to.at, from.at, bytes);
}

}  // namespace coco::exec
