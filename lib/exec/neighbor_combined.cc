// SPDX-License-Identifier: BSD-3-Clause
//
// Messages of neighbours between nodes, combined or not: where a rank carries others' blocks, and what goes
// straight.
#include "exec/neighbor_view.h"

namespace coco::exec {

using schedule::Area;
using schedule::Edge;
using schedule::Place;

void NeighborView::carry(std::int32_t scratch_blocks, const schedule::CombinedReceives* receives) {
    staged_blocks_ = personal_ ? graph_.send_blocks() : 1;
    arriving_ = receives != nullptr ? schedule::blocks_arriving(*receives, personal_) : 0;
    const std::int32_t all = scratch_blocks - staged_blocks_;
    if (sized_) {
        carrier_.emplace(comm_, near_.messages);
        items_.resize(static_cast<std::size_t>(all));
        comes_straight_.assign(static_cast<std::size_t>(graph_.recv_blocks), 0);
        return;
    }
    std::uint64_t bytes = static_cast<std::uint64_t>(all - arriving_) * call_.local.send.block_bytes +
                          static_cast<std::uint64_t>(arriving_) * call_.local.recv.block_bytes;
    if (near_.carried.size() < bytes) near_.carried.resize(bytes);
}

void NeighborView::send(std::int32_t to, Place first, std::int32_t blocks) {
    if (carrier_) {
        std::vector<Item> items;
        for (std::int32_t i = 0; i < blocks; ++i)
            items.push_back(item_of({first.owner, first.area, first.index + i}));
        return carrier_->send(to, items);
    }
    Spot block = own(first);
    comm_.wire->send(to, block.at, block.bytes * static_cast<std::uint64_t>(blocks));
}

void NeighborView::receive(std::int32_t from, Place first, std::int32_t blocks) {
    if (carrier_) return carrier_->receive(from, first, blocks);
    Spot block = own(first);
    comm_.wire->receive(from, block.at, block.bytes * static_cast<std::uint64_t>(blocks));
}

void NeighborView::complete(std::int32_t left) {
    const auto messages = static_cast<std::size_t>(left);
    if (!carrier_) return void(comm_.complete(messages));
    carrier_->complete(messages, [this](Place to, const Item& item) { put(to, item); });
}

void NeighborView::copy_combined(Place source, Place target) {
    if (carrier_) return put(target, item_of(source));
    Spot to = own(target);
    copy_block(to.at, own(source).at, to.bytes);
}

Item NeighborView::item_of(Place place) {
    if (is_carried(place)) return carried_item(place.index);
    Spot block = own(place.area, place.index);
    bool straight = place.area == Area::send ? block.bytes > kCombinedBytes
                                             : comes_straight_[static_cast<std::size_t>(place.index)] != 0;
    return {block.at, block.bytes, straight};
}

void NeighborView::put(Place target, const Item& item) {
    if (is_carried(target)) {
        carried_item(target.index) = item;
    } else if (item.straight) {
        comes_straight_[static_cast<std::size_t>(target.index)] = 1;
    } else {
        Spot to = own(Area::recv, target.index);
        truncated_ |= item.bytes > to.bytes;
        copy_block(to.at, item.at, std::min(item.bytes, to.bytes));
    }
}

void NeighborView::go_straight() {
    for (std::int32_t i = 0; i < graph_.send_blocks(); ++i) {
        const std::int32_t to = graph_.destinations[static_cast<std::size_t>(i)];
        if (to < 0 || comm_.map.node[to] == comm_.map.node[comm_.rank]) continue;
        const Item block = item_of({comm_.rank, Area::send, personal_ ? i : 0});
        if (block.straight)
            wire_.start_send(to, block.at, block.bytes, mpi::Wire::kSecondTag, near_.requests);
    }
    for (const Edge& edge : graph_.incoming)
        if (comes_straight_[static_cast<std::size_t>(edge.received)]) {
            Spot to = own(Area::recv, edge.received);
            wire_.start_receive(edge.sender, to.at, to.bytes, mpi::Wire::kSecondTag, near_.requests);
        }
}

Spot NeighborView::carried(std::int32_t index) {
    const std::uint64_t in_bytes = call_.local.recv.block_bytes, out_bytes = call_.local.send.block_bytes;
    auto i = static_cast<std::uint64_t>(index - staged_blocks_),
         arriving = static_cast<std::uint64_t>(arriving_);
    if (i < arriving) return {near_.carried.data() + i * in_bytes, in_bytes};
    return {near_.carried.data() + arriving * in_bytes + (i - arriving) * out_bytes, out_bytes};
}

}  // namespace coco::exec
