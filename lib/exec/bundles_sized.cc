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
#include "exec/element_flight.h"
#include "messages/scratch.h"

namespace coco::exec {
namespace {

using blocks::BlockAt;
using blocks::Buffer;
using blocks::Side;
using blocks::Which;
using messages::Item;
using schedule::Area;
using schedule::Milestone;
using schedule::Place;

// The room of a block in scratch, with its element. A gathered block serves many receivers: even longer ones
// gain by crossing the network once.
constexpr std::uint64_t kRoomBytes = kCombinedBytes, kGatheredRoomBytes = 16 * 1024;

std::uint64_t room_bytes_of(const comm::ScheduleKey& key) {
    return key.exchange == algorithms::Exchange::allgather ? kGatheredRoomBytes : kRoomBytes;
}

// A rank's scratch: elements, then the data of the blocks.
class SizedBundlesFlight final : public ElementFlight {
  public:
    // Requires: agree_on_scratch() said yes.
    SizedBundlesFlight(const Order& order, const schedule::Schedule& schedule, std::uint64_t room_bytes)
        : ElementFlight(order, order.comm.neighbors->graph_of(order.call.common.collective).recv_blocks),
          schedule_(schedule),
          graph_(comm_.neighbors->graph_of(common().collective)),
          data_bytes_(room_bytes - sizeof(Element)),
          messages_(*this, lane_, {.most_block_bytes = data_bytes_},
                    {mpi::Wire::kBundleTag, mpi::Wire::kBundleTag}) {
        signature_ ^= kBundled;
        send_ = ready(call_.local.send, Which::send);
        recv_ = ready(call_.local.recv, Which::recv);
        outcome.staged = is_staged();
    }

    void run() {
        begin_scratch(messages::take_scratch(channel_, lane_.post), schedule_.scratch_blocks);
        send_straight();
        walk(schedule_, *this);
        for (const schedule::Edge& edge : graph_.incoming)
            if (received_[base::index(edge.received)].straight != 0) receive_straight(edge);
        lane_.post.complete(channel_, lane_.post.requests);
        blocks::empty_side(recv_, call_.local.recv, 0);
    }

    // Data is copied to scratch from the send buffer alone; from then on it stays, and is gathered when sent.
    void copy(Place source, Place target) {
        const Element element = source.area == Area::scratch ? in_scratch(source) : own_block(source.index);
        if (target.area != Area::scratch)
            take(target.index, element);
        else
            in_scratch(target) = source.area == Area::scratch ? element : copied_to(target, element);
    }

    void wait(std::int32_t peer, Milestone milestone) { wait_for_scratch(peer, milestone); }
    void raise(Milestone milestone) { raise_with_scratch(milestone); }

    void send(std::int32_t to, Place first, std::int32_t blocks) { messages_.send(to, first, blocks); }
    void receive(std::int32_t from, Place first, std::int32_t blocks) {
        messages_.receive(from, first, blocks);
    }
    void complete(std::int32_t left) { messages_.complete(left); }

    // For SizedMessages. A message that comes lies in scratch, where its blocks go.
    Item item_at(Place place) {
        const Element& e = in_scratch(place);
        return {data_of(e), e.bytes, e.straight != 0};
    }
    std::byte* room_for_coming(const messages::Load<messages::Cargo>& load, std::uint64_t) {
        return room_of(load.first);
    }
    void put_item(Place place, const Item& item) {
        in_scratch(place) = own(item.at, item.bytes, item.straight);
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

    // The room of a block in scratch, of this rank or of a mate.
    std::byte* room_of(Place place) {
        return row(Area::scratch, place.owner).base + base::index(place.index) * data_bytes_;
    }
    // A message has a length besides each block.
    bool is_straight(std::uint64_t bytes) const { return bytes > data_bytes_ - sizeof(std::uint64_t); }

    // The element of an own block's copy, in anybody's scratch; or without data, of one that goes straight.
    Element copied_to(Place target, const Element& block) {
        std::byte* to = room_of(target);
        const bool straight = is_straight(block.bytes);
        if (!straight) blocks::copy_block(to, data_of(block), block.bytes);
        // The segment's begin, as a mate's is seen here too.
        const std::uint64_t begin = channel_.offset_of(channel_.at(target.owner, 0));
        return {channel_.offset_of(to) - begin, block.bytes, target.owner, straight, 0};
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
    const schedule::Neighborhood& graph_;
    const std::uint64_t data_bytes_;  // room for a block's data: as much as its share of a message
    SizedMessages<SizedBundlesFlight> messages_;
};

}  // namespace

Outcome run_sized_bundles(const Order& order, comm::Schedules::Kept& kept) {
    COCO_CHECK_DEAR(kept.key.bundles != nullptr && kept.key.neighborhood != nullptr,
                    "bundles run by a schedule that was made from them");
    const std::uint64_t room_bytes = room_bytes_of(kept.key);
    if (!messages::agree_on_scratch(order.comm.handle, order.lane.channel, order.lane.post,
                                    kept.fits_on(order.lane.number).sized,
                                    {kept.schedule->scratch_blocks, room_bytes, !order.comm.mates.empty()}))
        return run_nothing(order, stats::Reason::no_shared_heap);
    return fly<SizedBundlesFlight>(order, *kept.schedule, room_bytes);
}

}  // namespace coco::exec
