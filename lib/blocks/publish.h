// SPDX-License-Identifier: BSD-3-Clause
//
// How a rank publishes the blocks of a call in its slot, and where a peer finds them. Called by exec's
// flights. Thread safety: that of the channel. Never fails.
#pragma once
#include <span>

#include "base/check.h"
#include "blocks/side.h"
#include "blocks/store.h"
#include "channel/channel.h"

namespace coco::blocks {

// Copies a rank's blocks of a v or w form to `scratch`, behind a table of StagedBlock.
// left_out: blocks that no peer reads, in rising order. A single block is for all ranks, and never left out.
void copy_out(std::byte* scratch, const std::byte* from, std::span<const BlockAt> blocks,
              std::span<const std::int32_t> left_out);

// Says in the slot that scratch blocks are in it (`scratch` is the slot's own bytes), or else in the stage
// ring. left: where the blocks are that are left for mates, if not in scratch; else null.
void publish_scratch(const channel::Channel& channel, channel::Slot& slot, const std::byte* scratch,
                     const std::byte* left = nullptr);
// Says in the slot where both sides are. Private sides have no offset that a peer can use, and no peer uses
// it. send_table, recv_table: copies of the sides' tables in the stage ring (v and w forms).
void publish_sides(const channel::Channel& channel, channel::Slot& slot, const Side& send, const Side& recv,
                   const std::byte* send_table = nullptr, const std::byte* recv_table = nullptr);

// A peer's scratch in this process. Requires: its slot says inlined, staged or shown.
inline std::byte* scratch_of(const channel::Channel& channel, std::int32_t peer) {
    const channel::Slot& slot = channel.slot_of(peer);
    if (slot.publish == channel::Publish::shown) return channel.at(peer, slot.direct.recv.at);
    COCO_CHECK_DEAR(slot.publish == channel::Publish::inlined || slot.publish == channel::Publish::staged,
                    "a peer with scratch has said so in its slot");
    return slot.publish == channel::Publish::inlined ? const_cast<std::byte*>(slot.inlined)
                                                     : channel.at(peer, slot.scratch_at);
}
// Where the blocks are that a peer leaves for its mates.
inline std::byte* left_of(const channel::Channel& channel, std::int32_t peer) {
    const channel::Slot& slot = channel.slot_of(peer);
    return slot.publish == channel::Publish::shown ? channel.at(peer, slot.direct.send.at)
                                                   : scratch_of(channel, peer);
}
// What a rank shows of blocks that go through a pipe, all of it on the stage.
struct PipeRooms {
    const std::byte* ring;  // where they are shown piece by piece; null where they are in shared memory
    // layouts_bytes(), for the layouts of the buffer; null: the blocks are contiguous, or come in pieces.
    std::byte* layouts;
    const std::byte* table = nullptr;  // of the send side, in v and w forms
};
// Says in the slot how peers read the blocks of the send side.
void publish_piped(channel::Channel& channel, channel::Slot& slot, const Side& send, const Buffer& buffer,
                   const PipeRooms& rooms);
// The address of a peer's first block, in private memory that in its process. Requires: its slot says piped.
std::byte* piped_base_of(const channel::Channel& channel, std::int32_t peer);
// The layout of a peer's block. Contiguous, unless its slot says piped, and shared.
BlockLayout piped_layout_of(const channel::Channel& channel, std::int32_t peer, std::int32_t block);
// The tables of a peer's v or w form. Requires: its slot says inlined, staged, direct or piped (no table of
// what it receives then).
inline Table table_of(const channel::Channel& channel, std::int32_t peer) {
    const channel::Slot& slot = channel.slot_of(peer);
    if (slot.publish != channel::Publish::direct && slot.publish != channel::Publish::piped)
        return {reinterpret_cast<const StagedBlock*>(scratch_of(channel, peer)), nullptr, nullptr};
    return {nullptr, reinterpret_cast<const BlockAt*>(channel.at(peer, slot.direct.send_table)),
            reinterpret_cast<const BlockAt*>(channel.at(peer, slot.direct.recv_table))};
}

}  // namespace coco::blocks
