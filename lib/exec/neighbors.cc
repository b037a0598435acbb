// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges among neighbours, all five forms: within a node through the shared heap, between nodes by a
// message for each edge.
//
// How a rank's blocks can be had is its own affair: in the slot, on the stage ring, where they lie, or, when
// they are too many and private, through the kernel or by messages; the readers follow. A reader that the
// kernel refuses asks for messages before it raises kDone. So nobody refuses, ranks wait for nobody but those
// whose buffers they touch, and ranks that think of different sizes may choose unlike as long as the
// receivers copy. Where others write to receive buffers, all ranks of the node have to be ready for that:
// with few bytes they always are; else all look at all slots, and if one is not, the receivers copy.
#include <algorithm>

#include "base/check.h"
#include "base/index.h"
#include "comm/look_up.h"
#include "exec/neighbor_flight.h"
#include "os/cpu.h"

namespace coco::exec {

using blocks::Block;
using blocks::BlockAt;
using blocks::Where;
using channel::Publish;
using schedule::Area;
using schedule::Edge;

namespace {

const schedule::EdgeShare& share_for(const Order& order, schedule::Cut cut) {
    const CommonFacts& common = order.call.common;
    if (const schedule::EdgeShare* known = comm::find_share(order.comm, common.collective, cut))
        return *known;
    std::vector<std::uint64_t> weights;
    constexpr std::uint64_t kLeast = os::kLeastLineBytes;
    if (common.sized && cut != schedule::Cut::own)
        for (const BlockAt& block : order.call.local.recv.blocks)
            weights.push_back(std::max(block.bytes, kLeast));
    return comm::make_share(order.comm, common.collective, cut, weights);
}

}  // namespace

comm::ScheduleKey neighbor_key(const Order& order, const algorithms::Algorithm& algorithm) {
    const algorithms::Collective collective = order.call.common.collective;
    return {.algorithm = &algorithm,
            .exchange = base::exchange_of(collective),
            .root = 0,
            .segments = 1,
            .parameters = {},
            .neighborhood = &order.comm.neighbors->graph_of(collective),
            .share = &share_for(order, algorithm.cut)};
}

NeighborPlan neighbor_plan(const Order& order, const comm::ScheduleKey& key) {
    return {.chosen = &order.comm.schedule_for(key),
            .readers = share_for(order, schedule::Cut::own).touching};
}

void NeighborFlight::agree_on_writers() {
    publish_all();
    for (const std::int32_t mate : comm_.mates) channel_.wait_arrived(mate);
    writes_ = slot_->writer != 0 && std::ranges::all_of(comm_.mates, [&](std::int32_t mate) {
                  return channel_.slot_of(mate).writer == slot_->writer;
              });
    if (writes_ && sized_) look_for_truncation();
}

std::uint32_t NeighborFlight::signature(const blocks::Buffer& side) const {
    CommonFacts facts{.collective = common().collective};
    if (!sized_) facts.block_bytes = side.block_bytes;
    return signature_of(facts);
}

void NeighborFlight::arrived(std::int32_t peer) {
    const channel::Slot& slot = channel_.slot_of(peer);
    if (writes_) {
        // A slot of bundles says nothing of writers: what stands there is of an earlier call.
        if (slot.writer != slot_->writer || ((slot.signature ^ signature_) & kKindBits) != 0)
            stop_unequal(comm_, peer);
    } else {
        check_signature(comm_, channel_, peer, expected_);
    }
    blocks::Row& send = row(Area::send, peer);
    if (slot.publish == Publish::direct || slot.publish == Publish::piped) {
        send = {slot.publish == Publish::piped ? blocks::piped_base_of(channel_, peer)
                                               : channel_.at(peer, slot.direct.send.at),
                slot.direct.send.stride_bytes};
        row(Area::recv, peer) = {channel_.at(peer, slot.direct.recv.at), slot.direct.recv.stride_bytes};
    } else if (slot.publish == Publish::messages) {
        return receive_all(peer);
    } else {
        send = {blocks::scratch_of(channel_, peer), static_cast<std::int64_t>(call_.local.recv.block_bytes)};
    }
    if (sized_) store_.tables[peer] = blocks::table_of(channel_, peer);
}

void NeighborFlight::read_private(std::int32_t owner, Block from, Block to, std::uint64_t bytes) {
    COCO_CHECK_DEAR(bytes <= from.bytes && bytes <= to.bytes, "no more is read than there is, and than fits");
    if (bytes == 0 || std::ranges::find(unread_, owner) != unread_.end()) return;
    if (!read_through_kernel(channel_, owner, from.at, to, bytes, copied_)) unread_.push_back(owner);
}

void NeighborFlight::ask_for_messages() {
    for (const std::int32_t owner : unread_) {
        receive_all(owner);
        channel_.ask_for_pieces(owner);
    }
}

void NeighborFlight::answer_readers() {
    if (send_.where != Where::pipe || send_.piped != channel::Piped::address) return;
    for (const std::int32_t reader : plan_.readers)
        if (channel_.is_asked_by(reader)) send_to(reader);
}

void NeighborFlight::receive_all(std::int32_t peer) {
    for (const Edge& edge : graph_.incoming_from(peer)) {
        const schedule::Place received{comm_.rank, Area::recv, edge.received};
        const Block block = own(received);
        std::byte* at = has_layout(received) ? gathered(received) : block.at;
        lane_.post.wire->start_receive(peer, at, block.bytes, mpi::Wire::kSecondTag, lane_.post.requests);
    }
}

std::byte* NeighborFlight::gathered(schedule::Place received) {
    const blocks::Buffer& recv = call_.local.recv;
    const std::uint64_t all = sized_ ? recv.total_bytes : base::index(recv.block_count) * recv.block_bytes;
    std::byte* room = blocks::fetch(store_.private_room(blocks::Which::recv), all);
    if (room == nullptr) blocks::stop_without_memory(all);
    const Block block = own(received);
    gathered_.push_back({received, room + gathered_bytes_});
    gathered_bytes_ += block.bytes;
    COCO_CHECK_DEAR(gathered_bytes_ <= all, "what is gathered fits into its room");
    // What does not come must stay as it is.
    blocks::copy_data({gathered_.back().at}, {block.at, layout_of(received)}, block.bytes);
    return gathered_.back().at;
}

void NeighborFlight::scatter_received() {
    for (const Gathered& block : gathered_) {
        const Block to = own(block.received);
        blocks::copy_data({to.at, layout_of(block.received)}, {block.at}, to.bytes);
    }
}

void NeighborFlight::look_for_truncation() {
    for (const Edge& edge : graph_.incoming) {
        if (comm_.map.node[edge.sender] != comm_.map.node[comm_.rank]) continue;
        const bool to_itself = edge.sender == comm_.rank;
        if (!to_itself) arrived(edge.sender);
        const schedule::Place block{edge.sender, Area::send, personal_ ? edge.sent : 0};
        const Block sent = to_itself ? own(block) : block_of(block);
        outcome.truncated |= sent.bytes > own(Area::recv, edge.received).bytes;
    }
}

Outcome run_neighbors(const Order& order) {
    COCO_CHECK_DEAR(order.comm.neighbors != nullptr, "a call on neighbours runs where these are known");
    if (order.algorithm.combines()) return run_combined(order);
    return fly<NeighborFlight>(order, neighbor_plan(order, neighbor_key(order, order.algorithm)));
}

}  // namespace coco::exec
