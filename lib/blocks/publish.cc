// SPDX-License-Identifier: BSD-3-Clause
#include "blocks/publish.h"

#include "blocks/copy_block.h"

namespace coco::blocks {

using channel::Publish;

void copy_out(std::byte* scratch, const std::byte* from, std::span<const BlockAt> blocks,
              std::span<const std::int32_t> left_out) {
    auto* table = reinterpret_cast<StagedBlock*>(scratch);
    auto next_out = blocks.size() == 1 ? left_out.end() : left_out.begin();
    std::uint64_t at = blocks.size() * sizeof(StagedBlock);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const bool out = next_out != left_out.end() && static_cast<std::size_t>(*next_out) == i;
        if (out) ++next_out;
        std::uint64_t bytes = out ? 0 : blocks[i].bytes;
        table[i] = {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(bytes)};
        copy_block(scratch + at, base::displaced(from, blocks[i].displacement_bytes), bytes);
        at += bytes;
    }
}

void publish_scratch(const channel::Channel& channel, channel::Slot& slot, const std::byte* scratch) {
    slot.publish = scratch == slot.inlined ? Publish::inlined : Publish::staged;
    if (slot.publish == Publish::staged) slot.scratch_at = channel.offset_of(scratch);
}

void publish_sides(const channel::Channel& channel, channel::Slot& slot, const Side& send, const Side& recv,
                   const std::byte* send_table, const std::byte* recv_table) {
    slot.publish = Publish::direct;
    slot.direct = {.send = {channel.offset_of(send.base), send.stride_bytes},
                   .recv = {channel.offset_of(recv.base), recv.stride_bytes},
                   .send_table = channel.offset_of(send_table),
                   .recv_table = channel.offset_of(recv_table),
                   .ring_at = 0,
                   .send_bytes = 0,
                   .recv_bytes = 0};
}

void publish_private(const channel::Channel& channel, channel::Slot& slot, const Side& send,
                     const std::byte* ring, const std::byte* send_table) {
    slot.publish = Publish::piped;
    slot.direct = {.send = {reinterpret_cast<std::uintptr_t>(send.base), send.stride_bytes},
                   .recv = {},
                   .send_table = channel.offset_of(send_table),
                   .recv_table = 0,
                   .ring_at = channel.offset_of(ring),
                   .send_bytes = 0,
                   .recv_bytes = 0};
}

}  // namespace coco::blocks
