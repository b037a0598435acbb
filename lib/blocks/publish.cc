// SPDX-License-Identifier: BSD-3-Clause
#include "blocks/publish.h"

#include "base/check.h"
#include "base/index.h"
#include "blocks/copy_block.h"

namespace coco::blocks {

using channel::LayoutAt;
using channel::Publish;

void copy_out(std::byte* scratch, const std::byte* from, std::span<const BlockAt> blocks,
              std::span<const std::int32_t> left_out) {
    auto* table = reinterpret_cast<StagedBlock*>(scratch);
    COCO_CHECK_DEAR(std::ranges::is_sorted(left_out), "blocks are left out in rising order");
    auto next_out = blocks.size() == 1 ? left_out.end() : left_out.begin();
    std::uint64_t at = blocks.size() * sizeof(StagedBlock);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const bool out = next_out != left_out.end() && base::index(*next_out) == i;
        if (out) ++next_out;
        std::uint64_t bytes = out ? 0 : blocks[i].bytes;
        table[i] = {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(bytes)};
        copy_block(scratch + at, base::displaced(from, blocks[i].displacement_bytes), bytes);
        at += bytes;
        COCO_CHECK_DEAR(at <= UINT32_MAX, "places of staged blocks have 32 bits");
    }
    COCO_CHECK_DEAR(next_out == left_out.end(), "blocks that are left out are blocks of the buffer");
}

void publish_scratch(const channel::Channel& channel, channel::Slot& slot, const std::byte* scratch,
                     const std::byte* left) {
    COCO_CHECK_DEAR(scratch != nullptr, "scratch that is published has an address");
    if (left != nullptr) {
        slot.publish = Publish::shown;
        slot.direct.send.at = channel.offset_of(left);
        slot.direct.recv.at = channel.offset_of(scratch);
        return;
    }
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
                   .layouts_at = 0,
                   .piped = channel::Piped::shared,
                   .send_bytes = 0,
                   .recv_bytes = 0};
}

void publish_piped(channel::Channel& channel, channel::Slot& slot, const Side& send, const Buffer& buffer,
                   const PipeRooms& rooms) {
    const auto [ring, layouts, send_table] = rooms;
    const bool is_shared = send.piped == channel::Piped::shared;
    COCO_CHECK_DEAR(send.piped != channel::Piped::pieces || ring != nullptr,
                    "what is shown in pieces has a ring");
    COCO_CHECK_DEAR(layouts == nullptr || (is_shared && buffer.has_layouts()),
                    "layouts are shown of blocks in shared memory");
    if (send.piped == channel::Piped::address) channel.show_thread();
    slot.publish = Publish::piped;
    slot.direct = {
        .send = {is_shared ? channel.offset_of(send.base) : reinterpret_cast<std::uintptr_t>(send.base),
                 send.stride_bytes},
        .recv = {},
        .send_table = channel.offset_of(send_table),
        .recv_table = 0,
        .ring_at = channel.offset_of(ring),
        .layouts_at = layouts != nullptr ? channel.offset_of(layouts) : 0,
        .piped = send.piped,
        .send_bytes = 0,
        .recv_bytes = 0};
    if (layouts == nullptr) return;
    auto* entry = reinterpret_cast<LayoutAt*>(layouts);
    std::byte* words = layouts + buffer.layouts.size() * sizeof(LayoutAt);
    std::uint64_t words_at = 0;
    for_each_layout(buffer, [&](const BlockLayout& layout, bool is_new) {
        if (is_new) {
            const std::uint64_t bytes = words_of(layout.words) * sizeof(std::int64_t);
            std::memcpy(words, layout.words, bytes);
            words_at = channel.offset_of(words);
            words += bytes;
        }
        *entry++ = {layout.words != nullptr ? words_at : 0, layout.count, layout.extent_bytes};
    });
    COCO_CHECK_DEAR(words == layouts + layouts_bytes(buffer), "layouts take the room that was asked for");
}

std::byte* piped_base_of(const channel::Channel& channel, std::int32_t peer) {
    COCO_CHECK_DEAR(channel.slot_of(peer).publish == Publish::piped,
                    "a peer with a pipe has said so in its slot");
    const channel::DirectBody& body = channel.slot_of(peer).direct;
    return body.piped == channel::Piped::shared ? channel.at(peer, body.send.at)
                                                : reinterpret_cast<std::byte*>(body.send.at);
}

BlockLayout piped_layout_of(const channel::Channel& channel, std::int32_t peer, std::int32_t block) {
    COCO_CHECK_DEAR(block >= 0, "a block of a peer has a number");
    const channel::Slot& slot = channel.slot_of(peer);
    if (slot.publish != Publish::piped || slot.direct.layouts_at == 0) return {};
    const auto& entry = reinterpret_cast<const LayoutAt*>(channel.at(peer, slot.direct.layouts_at))[block];
    if (entry.words_at == 0) return {};
    return {reinterpret_cast<const std::int64_t*>(channel.at(peer, entry.words_at)), entry.count,
            entry.extent_bytes, 0};
}

}  // namespace coco::blocks
