// SPDX-License-Identifier: BSD-3-Clause
//
// Messages of neighbours between nodes, combined or not: where a rank carries others' blocks, and what goes
// straight.
#include "base/check.h"
#include "base/index.h"
#include "exec/neighbor_flight.h"

namespace coco::exec {

using blocks::Block;
using messages::Item;
using messages::Part;
using schedule::Area;
using schedule::Edge;
using schedule::Place;

void NeighborFlight::carry(std::int32_t scratch_blocks, const schedule::CombinedReceives* receives) {
    staged_blocks_ = personal_ ? graph_.send_blocks() : 1;
    arriving_ = receives != nullptr ? schedule::blocks_arriving(*receives, personal_) : 0;
    const std::int32_t all = scratch_blocks - staged_blocks_;
    COCO_CHECK_DEAR(arriving_ >= 0 && arriving_ <= all,
                    "scratch has room for what is staged and for what arrives");
    if (sized_) {
        by_loads_ = true;
        lane_.post.loads.clear();
        lane_.post.items.resize(base::index(all));
        lane_.post.comes_straight.assign(base::index(graph_.recv_blocks), 0);
        return;
    }
    std::uint64_t bytes = base::index(all - arriving_) * call_.local.send.block_bytes +
                          base::index(arriving_) * call_.local.recv.block_bytes;
    if (lane_.post.carried.size() < bytes) lane_.post.carried.resize(bytes);
}

void NeighborFlight::send(std::int32_t to, Place first, std::int32_t blocks) {
    if (by_loads_) return messages::send_load(*this, lane_.post.loads, to, first, blocks);
    Block block = own(first);
    lane_.post.wire->send(to, block.at, block.bytes * base::index(blocks));
}

void NeighborFlight::receive(std::int32_t from, Place first, std::int32_t blocks) {
    if (by_loads_) return messages::receive_load(*this, lane_.post.loads, from, first, blocks);
    Block block = own(first);
    lane_.post.wire->receive(from, block.at, block.bytes * base::index(blocks));
}

void NeighborFlight::complete(std::int32_t left) {
    const auto messages = base::index(left);
    if (!by_loads_) return ExchangeFlight::complete(messages);
    messages::complete_loads(*this, lane_.post.loads, messages);
}

std::uint64_t NeighborFlight::pack(Cargo& cargo, Place first, std::int32_t blocks) {
    auto item_at = [&](std::int32_t i) { return item_of({first.owner, first.area, first.index + i}); };
    std::uint64_t data_bytes = 0;
    for (std::int32_t i = 0; i < blocks; ++i) data_bytes += item_at(i).travelling_bytes();
    cargo.parcel = lane_.post.take_parcel(channel_, format_.head_bytes(blocks) + data_bytes);
    cargo.memory = lane_.post.memory_of(cargo.parcel);
    cargo.data = cargo.memory + format_.head_bytes(blocks);
    return messages::write_items(format_, cargo.memory, blocks, item_at);
}

void NeighborFlight::start_send(Cargo& cargo, std::int32_t to, Part part, std::uint64_t bytes) {
    const bool head = part == Part::head;
    lane_.post.wire->start_send(to, head ? cargo.memory : cargo.data, bytes,
                                head ? mpi::Wire::kFirstTag : mpi::Wire::kThirdTag, cargo.requests(part));
}

// Received messages stay where they are until the call is over.
void NeighborFlight::start_receive(Cargo& cargo, std::int32_t from, Part part, std::uint64_t bytes) {
    const bool head = part == Part::head;
    std::byte* memory = lane_.post.memory_of(lane_.post.take_parcel(channel_, bytes));
    (head ? cargo.memory : cargo.data) = memory;
    lane_.post.wire->start_receive(from, memory, bytes, head ? mpi::Wire::kFirstTag : mpi::Wire::kThirdTag,
                                   cargo.requests(part));
}

std::uint64_t NeighborFlight::learn(Cargo& cargo, std::int32_t, std::int32_t blocks) {
    cargo.data = cargo.memory + format_.head_bytes(blocks);
    return format_.data_bytes(cargo.memory, blocks);
}

void NeighborFlight::complete(Cargo& cargo, Part part) {
    lane_.post.complete(channel_, cargo.requests(part));
}

void NeighborFlight::sent(Cargo& cargo) { lane_.post.release_parcel(cargo.parcel); }

void NeighborFlight::unpack(Cargo& cargo, Place first, std::int32_t blocks) {
    messages::read_items(format_, cargo, blocks, [&](std::int32_t i, const Item& item) {
        put({first.owner, first.area, first.index + i}, item);
    });
}

void NeighborFlight::copy_combined(Place source, Place target) {
    if (by_loads_) return put(target, item_of(source));
    Block to = own(target);
    blocks::copy_block(to.at, own(source).at, to.bytes);
}

Item NeighborFlight::item_of(Place place) {
    if (is_carried(place)) return carried_item(place.index);
    Block block = own(place.area, place.index);
    bool straight = place.area == Area::send ? block.bytes > kCombinedBytes
                                             : lane_.post.comes_straight[base::index(place.index)] != 0;
    return {block.at, block.bytes, straight};
}

void NeighborFlight::put(Place target, const Item& item) {
    if (is_carried(target)) {
        carried_item(target.index) = item;
    } else if (item.straight) {
        lane_.post.comes_straight[base::index(target.index)] = 1;
    } else {
        Block to = own(Area::recv, target.index);
        outcome.truncated |= item.bytes > to.bytes;
        blocks::copy_block(to.at, item.at, std::min(item.bytes, to.bytes));
    }
}

void NeighborFlight::start_straight() {
    for (std::int32_t i = 0; i < graph_.send_blocks(); ++i) {
        const std::int32_t to = graph_.destinations[base::index(i)];
        if (to < 0 || comm_.map.node[to] == comm_.map.node[comm_.rank]) continue;
        const Item block = item_of({comm_.rank, Area::send, personal_ ? i : 0});
        if (block.straight)
            lane_.post.wire->start_send(to, block.at, block.bytes, mpi::Wire::kSecondTag,
                                        lane_.post.requests);
    }
    for (const Edge& edge : graph_.incoming)
        if (lane_.post.comes_straight[base::index(edge.received)]) {
            Block to = own(Area::recv, edge.received);
            lane_.post.wire->start_receive(edge.sender, to.at, to.bytes, mpi::Wire::kSecondTag,
                                           lane_.post.requests);
        }
}

Block NeighborFlight::carried(std::int32_t index) {
    COCO_CHECK_DEAR(index >= staged_blocks_, "blocks that are carried lie behind those that are staged");
    const std::uint64_t in_bytes = call_.local.recv.block_bytes, out_bytes = call_.local.send.block_bytes;
    auto i = base::index(index - staged_blocks_), arriving = base::index(arriving_);
    if (i < arriving) return {lane_.post.carried.data() + i * in_bytes, in_bytes};
    return {lane_.post.carried.data() + arriving * in_bytes + (i - arriving) * out_bytes, out_bytes};
}

}  // namespace coco::exec
