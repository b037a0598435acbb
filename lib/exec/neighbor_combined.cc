// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges among neighbours whose messages between nodes are combined: a rank carries blocks of others,
// which come in one message and go on in another.
//
// A rank that takes part must know that all who share neighbours with it do; it knows their block sizes, as
// blocks that go to one rank are of one size. So all ranks that share neighbours decide alike whether their
// blocks are so large that they are better sent straight. In v and w forms the lengths travel along
// (messages/carrier.h), and long blocks go straight.
#include "base/check.h"
#include "base/index.h"
#include "comm/look_up.h"
#include "exec/neighbor_flight.h"
#include "exec/sized_messages.h"

namespace coco::exec {
namespace {

using blocks::Block;
using messages::Item;
using schedule::Area;
using schedule::Edge;
using schedule::Place;

class CombinedFlight final : public NeighborFlight {
  public:
    // receives: the messages that this rank's blocks come in; null where they are too large.
    CombinedFlight(const Order& order, const NeighborPlan& plan, const schedule::CombinedReceives* receives)
        : NeighborFlight(order, plan),
          staged_blocks_(personal_ ? graph_.send_blocks() : 1),
          arriving_(receives != nullptr ? schedule::blocks_arriving(*receives, personal_) : 0) {
        make_room(plan.chosen->scratch_blocks - staged_blocks_);
    }

    void run() { run_as(*this); }

    void copy(Place source, Place target) {
        if (!is_carried(source) && !is_carried(target) && source.area != Area::recv)
            return NeighborFlight::copy(source, target);
        if (sized_) return put_item(target, item_at(source));
        Block to = own(target);
        blocks::copy_block(to.at, own(source).at, to.bytes);
    }
    void send(std::int32_t to, Place first, std::int32_t blocks) {
        if (sized_) return messages_.send(to, first, blocks);
        Block block = own(first);
        lane_.post.wire->send(to, block.at, block.bytes * base::index(blocks));
    }
    void receive(std::int32_t from, Place first, std::int32_t blocks) {
        if (sized_) return messages_.receive(from, first, blocks);
        Block block = own(first);
        lane_.post.wire->receive(from, block.at, block.bytes * base::index(blocks));
    }
    void complete(std::int32_t left) {
        if (!sized_) return NeighborFlight::complete(left);
        messages_.complete(left);
    }
    // Starts the messages of long blocks of v and w forms, between nodes, where their tag has no other
    // messages.
    void finish_messages() {
        if (!sized_) return;
        for (std::int32_t i = 0; i < graph_.send_blocks(); ++i) {
            const std::int32_t to = graph_.destinations[base::index(i)];
            if (to < 0 || comm_.map.node[to] == comm_.map.node[comm_.rank]) continue;
            const Item block = item_at({comm_.rank, Area::send, personal_ ? i : 0});
            if (block.straight)
                lane_.post.wire->start_send(to, block.at, block.bytes, mpi::Wire::kSecondTag,
                                            lane_.post.requests);
        }
        for (const Edge& edge : graph_.incoming)
            if (lane_.post.comes_straight[base::index(edge.received)]) {
                Block to = NeighborFlight::own(Area::recv, edge.received);
                lane_.post.wire->start_receive(edge.sender, to.at, to.bytes, mpi::Wire::kSecondTag,
                                               lane_.post.requests);
            }
    }

    // For SizedMessages, in v and w forms.
    Item item_at(Place place) {
        if (is_carried(place)) return carried_item(place.index);
        Block block = NeighborFlight::own(place.area, place.index);
        bool straight = place.area == Area::send ? block.bytes > kCombinedBytes
                                                 : lane_.post.comes_straight[base::index(place.index)] != 0;
        return {block.at, block.bytes, straight};
    }
    std::byte* room_for_coming(const messages::Load<messages::Cargo>&, std::uint64_t bytes) {
        return lane_.post.memory_of(lane_.post.take_parcel(channel_, bytes));
    }
    void put_item(Place target, const Item& item) {
        if (is_carried(target)) {
            carried_item(target.index) = item;
        } else if (item.straight) {
            lane_.post.comes_straight[base::index(target.index)] = 1;
        } else {
            Block to = NeighborFlight::own(Area::recv, target.index);
            outcome.truncated |= item.bytes > to.bytes;
            blocks::copy_block(to.at, item.at, std::min(item.bytes, to.bytes));
        }
    }

  private:
    // Room for the scratch that only this rank uses, behind the blocks that it stages: combined messages,
    // first those that come in.
    void make_room(std::int32_t blocks) {
        COCO_CHECK_DEAR(arriving_ >= 0 && arriving_ <= blocks,
                        "scratch has room for what is staged and for what arrives");
        if (sized_) {
            lane_.post.items.resize(base::index(blocks));
            lane_.post.comes_straight.assign(base::index(graph_.recv_blocks), 0);
            return;
        }
        std::uint64_t bytes = base::index(blocks - arriving_) * call_.local.send.block_bytes +
                              base::index(arriving_) * call_.local.recv.block_bytes;
        if (lane_.post.carried.size() < bytes) lane_.post.carried.resize(bytes);
    }

    bool is_carried(Place place) const {
        return place.area == Area::scratch && place.owner == comm_.rank && place.index >= staged_blocks_;
    }
    Block carried(std::int32_t index) {
        COCO_CHECK_DEAR(index >= staged_blocks_, "blocks that are carried lie behind those that are staged");
        const std::uint64_t in_bytes = call_.local.recv.block_bytes, out_bytes = call_.local.send.block_bytes;
        auto i = base::index(index - staged_blocks_), arriving = base::index(arriving_);
        if (i < arriving) return {lane_.post.carried.data() + i * in_bytes, in_bytes};
        return {lane_.post.carried.data() + arriving * in_bytes + (i - arriving) * out_bytes, out_bytes};
    }
    // The block at a place. Where a message has several blocks, they lie in carried scratch.
    Block own(Place place) {
        return is_carried(place) ? carried(place.index) : NeighborFlight::own(place.area, place.index);
    }

    // For v and w forms.
    Item& carried_item(std::int32_t index) {
        COCO_CHECK_DEAR(
            index >= staged_blocks_ && base::index(index - staged_blocks_) < lane_.post.items.size(),
            "a block that is carried has room");
        return lane_.post.items[base::index(index - staged_blocks_)];
    }

    const std::int32_t staged_blocks_, arriving_;  // of scratch; the others are carried
    SizedMessages<CombinedFlight> messages_{
        *this, lane_, messages::Format{}, {mpi::Wire::kFirstTag, mpi::Wire::kThirdTag}};
};

}  // namespace

// The pattern is made in the first call whatever the sizes, which ranks may think of unlike.
Outcome run_combined(const Order& order) {
    const CommonFacts& common = order.call.common;
    const schedule::Combining& all = comm::make_combining(order.comm, common.collective, order.parameters);
    auto combines = [&](const blocks::Buffer& side) {
        return common.sized || side.block_bytes <= kCombinedBytes;
    };
    comm::ScheduleKey key = neighbor_key(order, order.algorithm);
    if (combines(order.call.local.send)) key.combined_sends = &all.sends;
    if (combines(order.call.local.recv)) key.combined_receives = &all.receives;
    const NeighborPlan plan = neighbor_plan(order, key);
    if (key.combined_sends == nullptr && key.combined_receives == nullptr)
        return fly<NeighborFlight>(order, plan);
    return fly<CombinedFlight>(order, plan, key.combined_receives);
}

}  // namespace coco::exec
