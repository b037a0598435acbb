// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges among neighbours over several nodes, in bundles whose blocks have sizes of their own: the v and w
// forms of aggregate.
//
// No rank knows another's sizes, so lengths travel ahead of the data in a message, and lie beside each block
// in scratch, where every block has room for a size that is the same for all ranks. What is longer is only
// announced there, and goes straight from its sender to its receivers as a message of its own, within nodes
// too. So no rank touches another's buffers and nobody refuses.
#include <algorithm>

#include "base/check.h"
#include "base/index.h"
#include "comm/neighbors.h"
#include "exec/exchange_flight.h"
#include "messages/cargo.h"
#include "messages/scratch.h"

namespace coco::exec {
namespace {

using blocks::BlockAt;
using blocks::Buffer;
using blocks::Side;
using blocks::Which;
using messages::Item;
using messages::Part;
using schedule::Area;
using schedule::Milestone;
using schedule::Place;

// The room of a block in scratch, with its element. A gathered block serves many receivers: even longer ones
// gain by crossing the network once.
constexpr std::uint64_t kRoomBytes = kCombinedBytes, kGatheredRoomBytes = 16 * 1024;

// The element beside a block. Lies in scratch, is written and read by all ranks of the node.
struct BlockElement {
    std::uint64_t at;  // from the first byte of the owner's data
    std::uint64_t bytes : 63;
    std::uint64_t straight : 1;  // the data is not there: it goes straight
};
static_assert(sizeof(BlockElement) == 16);

std::uint64_t room_bytes_of(const comm::ScheduleKey& key) {
    return key.exchange == algorithms::Exchange::allgather ? kGatheredRoomBytes : kRoomBytes;
}

// The number of blocks of scratch, with those of the messages to be sent.
std::int32_t all_blocks(const schedule::Schedule& schedule) {
    std::int32_t blocks = schedule.scratch_blocks;
    for (const schedule::Step& step : schedule.steps)
        if (step.act == schedule::Act::send) blocks += step.count;
    return blocks;
}

// A rank's scratch: elements, from the last block's to the first's, then the data. Messages to be sent are
// put together behind that.
class SizedBundlesFlight final : public ExchangeFlight {
  public:
    static constexpr bool kRows = false;
    using Cargo = messages::Cargo;

    // Requires: agree_on_scratch() said yes.
    SizedBundlesFlight(const Order& order, const schedule::Schedule& schedule, std::uint64_t room_bytes)
        : ExchangeFlight(order),
          schedule_(schedule),
          next_message_(schedule.scratch_blocks),
          graph_(comm_.neighbors->graph_of(common().collective)),
          personal_(base::is_personal(common().collective)),
          data_bytes_(room_bytes - sizeof(BlockElement)),
          format_{.most_block_bytes = data_bytes_} {
        signature_ ^= kBundled;
        straight_.assign(base::index(graph_.recv_blocks), 0);
        loads_.clear();
        send_ = ready(call_.local.send, Which::send);
        recv_ = ready(call_.local.recv, Which::recv);
        outcome.staged = is_staged();
    }

    void run() {
        row(Area::scratch, comm_.rank).base = messages::take_scratch(channel_, lane_.post) +
                                              sizeof(BlockElement) * base::index(schedule_.scratch_blocks);
        send_straight();
        walk(schedule_, *this);
        for (const schedule::Edge& edge : graph_.incoming)
            if (straight_[base::index(edge.received)] != 0) receive_straight(edge);
        lane_.post.complete(channel_, lane_.post.requests);
        blocks::empty_side(recv_, call_.local.recv, 0);
    }

    void copy(Place source, Place target) {
        if (target.area == Area::scratch && source.area == Area::scratch)
            element(target) = element(source);  // the data stays; it is gathered when it is sent
        else if (target.area == Area::scratch)
            fill(target, send_.blocks[base::index(source.index)]);
        else if (source.area == Area::scratch)
            take(target.index, row(Area::scratch, source.owner).base, element(source));
        else
            take(target.index, send_.base, own_element(send_.blocks[base::index(source.index)]));
    }

    void wait(std::int32_t peer, Milestone milestone) { wait_for_scratch(peer, milestone); }
    void raise(Milestone milestone) { raise_with_scratch(milestone); }

    void send(std::int32_t to, Place first, std::int32_t blocks) {
        messages::send_load(*this, loads_, to, first, blocks);
    }
    void receive(std::int32_t from, Place first, std::int32_t blocks) {
        coming_ = first;
        messages::receive_load(*this, loads_, from, first, blocks);
    }
    void complete(std::int32_t left) { messages::complete_loads(*this, loads_, base::index(left)); }

    // As a port of messages/carrier.h. A message lies in scratch, behind the blocks or where its blocks go.
    const messages::Format& format() const { return format_; }
    std::uint64_t pack(Cargo& cargo, Place first, std::int32_t blocks) {
        cargo.memory = data({first.owner, first.area, next_message_});
        next_message_ += blocks;
        COCO_CHECK_DEAR(next_message_ <= all_blocks(schedule_),
                        "messages lie in the scratch that ranks agreed on");
        return messages::write_items(format_, cargo.memory, blocks, [&](std::int32_t i) {
            const Place place{first.owner, first.area, first.index + i};
            const BlockElement e = element(place);
            return Item{block_at(place), e.bytes, e.straight != 0};
        });
    }
    void start_send(Cargo& cargo, std::int32_t to, Part part, std::uint64_t bytes) {
        lane_.post.wire->start_send(to, cargo.memory, bytes, mpi::Wire::kBundleTag, cargo.requests(part));
    }
    void start_receive(Cargo& cargo, std::int32_t from, Part part, std::uint64_t bytes) {
        cargo.memory = data(coming_);
        lane_.post.wire->start_receive(from, cargo.memory, bytes, mpi::Wire::kBundleTag,
                                       cargo.requests(part));
    }
    std::uint64_t learn(Cargo& cargo, std::int32_t, std::int32_t blocks) {
        cargo.data = cargo.memory + format_.head_bytes(blocks);
        return format_.data_bytes(cargo.memory, blocks);
    }
    void complete(Cargo& cargo, Part part) { lane_.post.complete(channel_, cargo.requests(part)); }
    void sent(Cargo&) {}
    void unpack(Cargo& cargo, Place first, std::int32_t blocks) {
        const std::byte* own_data = row(Area::scratch, comm_.rank).base;
        messages::read_items(format_, cargo, blocks, [&](std::int32_t i, const Item& item) {
            element({comm_.rank, Area::scratch, first.index + i}) = {base::index(item.at - own_data),
                                                                     item.bytes, item.straight};
        });
    }

  private:
    Side ready(const Buffer& buffer, Which which) {
        Side side = plan_side(store_, buffer,
                              {.exposed = false,
                               .must_copy = false,
                               .if_private = stats::Reason::none,
                               .block_bytes = 0,
                               .bytes = buffer.total_bytes},
                              which);
        lay_out(side, buffer, side.base, 0, store_.blocks_of(which));
        fill_side(side, buffer, 0);  // bytes that are not received must stay as they are
        return side;
    }

    std::byte* data(Place place) {
        return row(Area::scratch, place.owner).base + base::index(place.index) * data_bytes_;
    }
    BlockElement& element(Place place) {
        return reinterpret_cast<BlockElement*>(row(Area::scratch, place.owner).base)[-1 - place.index];
    }
    const std::byte* block_at(Place place) {
        return base::displaced(row(Area::scratch, place.owner).base,
                               static_cast<std::int64_t>(element(place).at));
    }
    static BlockElement own_element(const BlockAt& block) {
        return {static_cast<std::uint64_t>(block.displacement_bytes), block.bytes, 0};
    }
    // A message has a length besides each block.
    bool is_straight(std::uint64_t bytes) const { return bytes > data_bytes_ - sizeof(std::uint64_t); }

    void fill(Place target, const BlockAt& block) {
        std::byte* to = data(target);
        const bool straight = is_straight(block.bytes);
        element(target) = {base::index(target.index) * data_bytes_, block.bytes, straight};
        if (!straight)
            blocks::copy_block(to, base::displaced(send_.base, block.displacement_bytes), block.bytes);
    }

    void take(std::int32_t index, const std::byte* base, BlockElement source) {
        COCO_CHECK_DEAR(index >= 0 && base::index(index) < straight_.size(),
                        "a block that is taken is received");
        if (source.straight != 0) {
            straight_[base::index(index)] = 1;
            return;
        }
        const BlockAt& room = recv_.blocks[base::index(index)];
        outcome.truncated |= source.bytes > room.bytes;
        blocks::copy_block(base::displaced(recv_.base, room.displacement_bytes),
                           base::displaced(base, static_cast<std::int64_t>(source.at)),
                           std::min<std::uint64_t>(source.bytes, room.bytes));
    }

    // Starts the messages of long blocks, before all else: their receivers come to them when all else is
    // done.
    void send_straight() {
        for (std::int32_t i = 0; i < graph_.send_blocks(); ++i) {
            const std::int32_t to = graph_.destinations[base::index(i)];
            if (to < 0 || to == comm_.rank) continue;
            const BlockAt& block = send_.blocks[base::index(personal_ ? i : 0)];
            if (is_straight(block.bytes))
                lane_.post.wire->start_send(to, base::displaced(send_.base, block.displacement_bytes),
                                            block.bytes, mpi::Wire::kThirdTag, lane_.post.requests);
        }
    }
    void receive_straight(const schedule::Edge& edge) {
        const BlockAt& room = recv_.blocks[base::index(edge.received)];
        lane_.post.wire->start_receive(edge.sender, base::displaced(recv_.base, room.displacement_bytes),
                                       room.bytes, mpi::Wire::kThirdTag, lane_.post.requests);
    }

    const schedule::Schedule& schedule_;
    std::int32_t next_message_;  // the block of scratch where the next message begins
    const schedule::Neighborhood& graph_;
    const bool personal_;
    const std::uint64_t data_bytes_;  // room for a block's data: as much as its share of a message
    const messages::Format format_;
    Place coming_{};  // where the blocks of the message go that is about to be received
    std::vector<char>& straight_ = lane_.post.comes_straight;  // by receive block
    messages::Loads<Cargo>& loads_ = lane_.post.loads;
};

}  // namespace

Outcome run_sized_bundles(const Order& order, comm::Schedules::Kept& kept) {
    COCO_CHECK_DEAR(kept.key.bundles != nullptr && kept.key.neighborhood != nullptr,
                    "bundles run by a schedule that was made from them");
    const std::uint64_t room_bytes = room_bytes_of(kept.key);
    if (!messages::agree_on_scratch(order.comm.handle, order.lane.channel, order.lane.post,
                                    kept.fits_on(order.lane.number).sized,
                                    {all_blocks(*kept.schedule), room_bytes, !order.comm.mates.empty()}))
        return run_nothing(order, stats::Reason::no_shared_heap);
    return fly<SizedBundlesFlight>(order, *kept.schedule, room_bytes);
}

}  // namespace coco::exec
