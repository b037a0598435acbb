// SPDX-License-Identifier: BSD-3-Clause
//
// What the steps of an exchange among neighbours mean in one call: how this rank's blocks can be had, and
// where its neighbours' are. Called by neighbors.cc, for one call. Thread safety: that of the communicator.
#pragma once
#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "comm/neighbors.h"
#include "exec/carrier.h"
#include "exec/copy_block.h"
#include "exec/exchange.h"

namespace coco::exec {

class NeighborView : public ExchangeView {
  public:
    NeighborView(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm)
        : ExchangeView(comm, call.common, algorithm),
          call_(call),
          near_(*comm.neighbors),
          graph_(near_.graph_of(call.common.collective)),
          wire_(comm.wire != nullptr ? *comm.wire : *near_.wire),
          sized_(call.common.sized),
          personal_(base::is_personal(call.common.collective)),
          writes_(algorithm.writes_peer_recv()),
          expected_(signature(call.local.recv)) {
        signature_ = signature(call.local.send);
        std::uint64_t blocks = personal_ ? static_cast<std::uint64_t>(near_.most_blocks) : 1;
        fetches_ahead_ = !sized_ && blocks * call.local.recv.block_bytes <= channel::kInlineBytes;
    }

    // Makes room for the scratch that only this rank uses, behind the blocks that it stages: combined
    // messages, first those that come in.
    void carry(std::int32_t scratch_blocks, const schedule::CombinedReceives* receives);

    // Publishes. Returns: whether the algorithm can be walked; else receivers have to copy.
    bool prepare();

    static constexpr bool kRows = false;
    void copy(schedule::Place source, schedule::Place target) {
        if (is_carried(source) || is_carried(target) || source.area == schedule::Area::recv)
            return copy_combined(source, target);
        if (target.area == schedule::Area::scratch) return;  // filled in place()
        Spot from = source.owner == comm_.rank ? own(schedule::Area::send, source.index) : spot_of(source);
        if (from.at == nullptr) return;  // it comes as a message
        Spot to = target.owner == comm_.rank ? own(schedule::Area::recv, target.index) : spot_of(target);
        if (target.owner == comm_.rank) truncated_ |= from.bytes > to.bytes;
        copy_block(to.at, from.at, std::min(from.bytes, to.bytes));
    }

    void wait(std::int32_t peer, schedule::Milestone milestone) {
        if (milestone == schedule::kArrived) {
            channel_.wait_arrived(peer, [&] { return soon_from(peer); });
            arrived(peer);
        } else if (writes_ || is_read_in_place()) {
            channel_.wait_milestone(peer, milestone);
        }
    }
    void raise(schedule::Milestone milestone) {
        if (milestone != schedule::kArrived) return channel_.raise(milestone);
        publish_all();
    }

    void send(std::int32_t to, schedule::Place first, std::int32_t blocks);
    void receive(std::int32_t from, schedule::Place first, std::int32_t blocks);
    void complete(std::int32_t left);

    // readers: the ranks that may be reading this one's buffers. Requires: the schedule has been walked.
    void finish(std::span<const std::int32_t> readers);
    bool staged() const { return by_message_ || send_.where != Where::user || recv_.where != Where::user; }
    bool truncated() const { return truncated_; }

  private:
    std::uint32_t signature(const Buffer& side) const;

    // How the blocks can be had: neighbor_publish.cc.
    std::uint64_t send_total() const;
    std::uint64_t table_bytes() const;
    // What it copies out takes, with its table. (Of a plain form: with room for blocks that nobody reads.)
    std::uint64_t out_bytes() const;
    std::span<const std::int32_t> unread() const;
    // Others copy along the curve, even what a rank sends to itself.
    bool is_exposed() const { return near_.has_readers || writes_; }
    bool wants_copies() const;
    Side plan(const Buffer& buffer, bool exposed, int room);
    void plan_send();
    void plan_recv();
    // One piece of the ring for all that this rank publishes: tables, then copies.
    void place();
    void publish_copies(std::byte* scratch, bool inlined);
    void copy_run(std::byte* scratch, comm::Neighbors::Run run);
    void publish_places(std::byte* send_table, std::byte* recv_table);
    void publish_all();
    bool is_read_in_place() const {
        return near_.has_readers && !copies_out_ && !by_message_ && !send_.is_guarded();
    }

    // Where in a neighbour's slot this rank's blocks will be.
    channel::Prefetch soon_from(std::int32_t peer) const {
        if (!fetches_ahead_) return {};
        const std::uint64_t bytes = call_.local.recv.block_bytes;
        const std::byte* blocks = channel_.slot_of(peer).inlined;
        if (!personal_) return {blocks, bytes};
        const auto edges = graph_.incoming_from(peer);
        if (edges.empty()) return {};
        const auto first = static_cast<std::uint64_t>(edges.front().sent);
        return {blocks + first * bytes, (static_cast<std::uint64_t>(edges.back().sent) + 1 - first) * bytes};
    }

    Spot own(schedule::Area area, std::int32_t index) const {
        const Side& side = area == schedule::Area::send ? send_ : recv_;
        if (sized_) return {side.base + side.blocks[index].displacement_bytes, side.blocks[index].bytes};
        const Buffer& buffer = area == schedule::Area::send ? call_.local.send : call_.local.recv;
        return {side.base + index * side.stride_bytes, buffer.block_bytes};
    }

    // What messages that are combined carry, between nodes: neighbor_combined.cc.
    bool is_carried(schedule::Place place) const {
        return place.area == schedule::Area::scratch && place.owner == comm_.rank &&
               place.index >= staged_blocks_;
    }
    Spot carried(std::int32_t index);
    // Several blocks of a message lie in carried scratch only.
    Spot own(schedule::Place place) {
        return is_carried(place) ? carried(place.index) : own(place.area, place.index);
    }
    void copy_combined(schedule::Place source, schedule::Place target);
    // Of v and w forms.
    Item& carried_item(std::int32_t index) {
        return items_[static_cast<std::size_t>(index - staged_blocks_)];
    }
    Item item_of(schedule::Place place);
    void put(schedule::Place target, const Item& item);
    // Long blocks of v and w forms, between nodes, where this tag has no others.
    void go_straight();

    Spot spot_of(schedule::Place place) {
        if (place.area != schedule::Area::recv &&
            channel_.slot_of(place.owner).publish == channel::Publish::messages)
            return {nullptr, 0};
        const comm::Row& at = row(
            place.area == schedule::Area::recv ? schedule::Area::recv : schedule::Area::send, place.owner);
        if (!sized_) {
            const channel::DirectBody& direct = channel_.slot_of(place.owner).direct;
            std::uint64_t bytes = !writes_                             ? call_.local.recv.block_bytes
                                  : place.area == schedule::Area::recv ? direct.recv_bytes
                                                                       : direct.send_bytes;
            return {at.base + place.index * at.stride_bytes, bytes};
        }
        const comm::Table& table = comm_.tables[place.owner];
        if (place.area == schedule::Area::recv)
            return {at.base + table.recv[place.index].displacement_bytes, table.recv[place.index].bytes};
        if (table.staged != nullptr)
            return {at.base + table.staged[place.index].offset_bytes, table.staged[place.index].bytes};
        return {at.base + table.send[place.index].displacement_bytes, table.send[place.index].bytes};
    }

    void arrived(std::int32_t peer);

    // All messages of a rank of the node, in the order in which it sends them.
    void receive_all(std::int32_t peer);

    // Where others wrote to our buffer, only we can tell that it was too short.
    void look_for_truncation();

    const Call& call_;
    comm::Neighbors& near_;
    const schedule::Neighborhood& graph_;
    mpi::Wire& wire_;
    const bool sized_, personal_;
    bool writes_;  // the algorithm, and all ranks can have it so
    const std::uint32_t expected_;
    bool copies_out_ = false, by_message_ = false, ready_for_writers_ = false, truncated_ = false;
    bool fetches_ahead_ = false;                             // neighbours' blocks are likely in their slots
    std::int32_t staged_blocks_ = INT32_MAX, arriving_ = 0;  // of scratch; the rest is carried
    std::optional<Carrier> carrier_;                         // v and w forms, where messages are combined
    std::vector<Item> items_;                                // carried
    std::vector<char> comes_straight_;                       // by receive block
    Side send_, recv_;
    channel::Slot* slot_ = nullptr;
};

}  // namespace coco::exec
