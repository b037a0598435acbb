// SPDX-License-Identifier: BSD-3-Clause
//
// The messages of a flight whose blocks have sizes of their own: a port of messages/carrier.h, which all
// such flights have in common. Blocks that are sent are copied into a parcel, unless they are a second
// message and lie in one piece; blocks that come stay in their message until the flight has taken them.
// Thread safety: that of the lane.
//
// A Flight says where blocks are:
//   item_at(place)                       a block that is sent, as the message brings it
//   room_for_coming(load, bytes)         memory for a message
//   put_item(place, item)                takes a block that came; its data stays until the call is over
// and, if the format has an opening, write_opening(memory, blocks) and read_opening(memory, from, blocks).
#pragma once
#include "base/check.h"
#include "base/index.h"
#include "blocks/copy_block.h"
#include "comm/comm.h"
#include "messages/carrier.h"
#include "messages/post.h"

namespace coco::exec {

// The tags of a flight's messages: of heads, and of rests.
struct MessageTags {
    int head, rest;
};

template <class Flight>
class SizedMessages {
  public:
    SizedMessages(Flight& flight, comm::Lane& lane, const messages::Format& format, MessageTags tags)
        : flight_(flight), channel_(lane.channel), post_(lane.post), format_(format), tags_(tags) {
        post_.loads.clear();
    }

    void send(std::int32_t to, schedule::Place first, std::int32_t blocks) {
        messages::send_load(*this, post_.loads, to, first, blocks);
    }
    void receive(std::int32_t from, schedule::Place first, std::int32_t blocks) {
        messages::receive_load(*this, post_.loads, from, first, blocks);
    }
    // Waits for all messages but the `left` last started.
    void complete(std::int32_t left) { messages::complete_loads(*this, post_.loads, base::index(left)); }

    using Part = messages::Part;
    using Cargo = messages::Cargo;
    using Load = messages::Load<Cargo>;
    const messages::Format& format() const { return format_; }
    std::uint64_t pack(Load& load) {
        std::uint64_t data_bytes = 0;
        const std::byte* begin = nullptr;
        bool in_one_piece = true;  // the data lies in memory as it goes
        for (std::int32_t i = 0; i < load.blocks; ++i) {
            const messages::Item item = flight_.item_at(load.place(i));
            if (item.travelling_bytes() == 0) continue;
            if (begin == nullptr) begin = item.at;
            in_one_piece &= item.at == begin + data_bytes;
            data_bytes += item.travelling_bytes();
        }
        const messages::Parts parts = format_.parts_of(load.blocks, data_bytes);
        const bool from_its_place = parts.second_bytes != 0 && in_one_piece;
        Cargo& cargo = load.cargo;
        cargo.parcel =
            post_.take_parcel(channel_, parts.first_bytes + (from_its_place ? 0 : parts.second_bytes));
        cargo.memory = post_.memory_of(cargo.parcel);
        cargo.data =
            from_its_place ? const_cast<std::byte*>(begin) : cargo.memory + format_.head_bytes(load.blocks);
        if constexpr (requires { flight_.write_opening(cargo.memory, 0); })
            flight_.write_opening(cargo.memory, load.blocks);
        else
            COCO_CHECK_DEAR(format_.opening_bytes == 0, "a flight writes the opening of its format");
        std::byte* data = cargo.data;
        for (std::int32_t i = 0; i < load.blocks; ++i) {
            const messages::Item item = flight_.item_at(load.place(i));
            format_.write_length(cargo.memory, i, item);
            const std::uint64_t bytes = item.travelling_bytes();
            if (bytes != 0 && data != item.at) blocks::copy_block(data, item.at, bytes);
            data += bytes;
        }
        COCO_CHECK_DEAR(data == cargo.data + data_bytes, "a parcel has room for its blocks");
        return data_bytes;
    }
    void start_send(Load& load, Part part, std::uint64_t bytes) {
        const std::byte* from = part == Part::head ? load.cargo.memory : load.cargo.data;
        post_.wire->start_send(load.peer, from, bytes, tag_of(part), load.cargo.requests(part));
    }
    void start_receive(Load& load, Part part, std::uint64_t bytes) {
        std::byte* memory = flight_.room_for_coming(load, bytes);
        (part == Part::head ? load.cargo.memory : load.cargo.data) = memory;
        post_.wire->start_receive(load.peer, memory, bytes, tag_of(part), load.cargo.requests(part));
    }
    std::uint64_t learn(Load& load) {
        Cargo& cargo = load.cargo;
        if constexpr (requires { flight_.read_opening(cargo.memory, 0, 0); })
            flight_.read_opening(cargo.memory, load.peer, load.blocks);
        else
            COCO_CHECK_DEAR(format_.opening_bytes == 0, "a flight reads the opening of its format");
        cargo.data = cargo.memory + format_.head_bytes(load.blocks);
        return format_.data_bytes(cargo.memory, load.blocks);
    }
    void complete(Load& load, Part part) { post_.complete(channel_, load.cargo.requests(part)); }
    void sent(Load& load) { post_.release_parcel(load.cargo.parcel); }
    void unpack(Load& load) {
        const std::byte* data = load.cargo.data;
        for (std::int32_t i = 0; i < load.blocks; ++i) {
            messages::Item item = format_.read_length(load.cargo.memory, i);
            item.at = data;
            data += item.travelling_bytes();
            flight_.put_item(load.place(i), item);
        }
    }

  private:
    int tag_of(Part part) const { return part == Part::head ? tags_.head : tags_.rest; }

    Flight& flight_;
    channel::Channel& channel_;
    messages::Post& post_;
    const messages::Format format_;
    const MessageTags tags_;
};

}  // namespace coco::exec
