// SPDX-License-Identifier: BSD-3-Clause
//
// A call on neighbours under way: how this rank's blocks can be had, and where its neighbours' are. Made by
// neighbors.cc, for one call; neighbor_combined.cc has the one whose messages between nodes are combined.
// Thread safety: that of the lane.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/index.h"
#include "comm/neighbors.h"
#include "exec/exchange_flight.h"
#include "exec/kernel_read.h"

namespace coco::exec {

// The schedule by which a call on neighbours shall run, and what belongs to it.
struct NeighborPlan {
    const schedule::Schedule* chosen;
    // The ranks that may be reading this one's buffers.
    std::span<const std::int32_t> readers;
};

// The key of an algorithm's schedule for the neighbours of the call.
comm::ScheduleKey neighbor_key(const Order& order, const algorithms::Algorithm& algorithm);
NeighborPlan neighbor_plan(const Order& order, const comm::ScheduleKey& key);
// neighbor_combined.cc. Requires: the algorithm combines.
Outcome run_combined(const Order& order);

class NeighborFlight : public ExchangeFlight {
  public:
    NeighborFlight(const Order& order, const NeighborPlan& plan)
        : ExchangeFlight(order),
          order_(order),
          plan_(plan),
          near_(*comm_.neighbors),
          graph_(near_.graph_of(common().collective)),
          sized_(common().sized),
          personal_(base::is_personal(common().collective)),
          writes_(algorithm_.writes_peer_recv()),
          expected_(signature(call_.local.recv)) {
        COCO_CHECK_DEAR(plan.chosen != nullptr, "a call on neighbours has a schedule");
        COCO_CHECK_DEAR(near_.closed == stats::Reason::none,
                        "a call on neighbours runs where these are known");
        signature_ = signature(call_.local.send);
        std::uint64_t blocks = personal_ ? base::index(near_.most_blocks) : 1;
        fetches_ahead_ = !sized_ && blocks * call_.local.recv.block_bytes <= channel::kInlineBytes;
        store_.tables.resize(base::index(comm_.ranks));
        plan_send();
        plan_recv();
        outcome.staged = by_message_ || is_staged();
    }

    void run() { run_as(*this); }

    static constexpr bool kRows = false;
    void copy(schedule::Place source, schedule::Place target) {
        if (target.area == schedule::Area::scratch) return;  // filled in place()
        blocks::Block from =
            source.owner == comm_.rank ? own(schedule::Area::send, source.index) : block_of(source);
        if (from.at == nullptr) return;  // it comes as a message
        blocks::Block to =
            target.owner == comm_.rank ? own(schedule::Area::recv, target.index) : block_of(target);
        if (target.owner == comm_.rank) outcome.truncated |= from.bytes > to.bytes;
        const std::uint64_t bytes = std::min(from.bytes, to.bytes);
        if (is_private(source.owner)) [[unlikely]]
            read_private(source.owner, from, {to.at, to.bytes, layout_of(target)}, bytes);
        else if (has_layout(source) || has_layout(target)) [[unlikely]]
            blocks::copy_data({to.at, layout_of(target)}, {from.at, layout_of(source)}, bytes);
        else
            blocks::copy_block(to.at, from.at, bytes);
    }

    void wait(std::int32_t peer, schedule::Milestone milestone) {
        if (milestone == schedule::kArrived) {
            channel_.wait_arrived(peer, [&] { return prefetch_from(peer); });
            return arrived(peer);
        }
        if (writes_ || is_read_in_place()) channel_.wait_milestone(peer, milestone);
    }
    void raise(schedule::Milestone milestone) {
        if (milestone == schedule::kArrived) return publish_all();
        if (milestone == schedule::kDone) ask_for_messages();
        channel_.raise(milestone);
    }

    // A message brings the block of one edge.
    void send(std::int32_t to, schedule::Place block, std::int32_t blocks) {
        COCO_CHECK_DEAR(blocks == 1, "each edge has a message of its own");
        const blocks::Block from = own(block);
        lane_.post.wire->send(to, from.at, from.bytes);
    }
    void receive(std::int32_t from, schedule::Place block, std::int32_t blocks) {
        COCO_CHECK_DEAR(blocks == 1, "each edge has a message of its own");
        const blocks::Block to = own(block);
        lane_.post.wire->receive(from, to.at, to.bytes);
    }
    void complete(std::int32_t left) { ExchangeFlight::complete(base::index(left)); }

  protected:
    // Runs the call as a flight of that class, which may have an end of its own: finish_messages().
    template <class Flight>
    void run_as(Flight& flight) {
        place();
        const bool may_write = writes_;
        if (may_write) agree_on_writers();
        const bool as_chosen = writes_ == may_write;
        const algorithms::Algorithm& pull = plain_pull(common().collective);
        outcome.ran = as_chosen ? &algorithm_ : &pull;
        walk(as_chosen ? *plan_.chosen : comm_.schedule_for(neighbor_key(order_, pull)), flight);
        if (!writes_ && !algorithm_.reads_peer_send() && is_read_in_place())
            for (const std::int32_t reader : plan_.readers) channel_.wait_milestone(reader, schedule::kDone);
        answer_readers();
        if constexpr (requires { flight.finish_messages(); }) flight.finish_messages();
        lane_.post.complete(channel_, lane_.post.requests);
        scatter_received();
        blocks::empty_side(recv_, call_.local.recv, call_.local.recv.block_bytes);
    }

    std::uint32_t signature(const blocks::Buffer& side) const;
    // Where others write to receive buffers, all ranks of the node have to be ready for that.
    void agree_on_writers();

    // The functions that decide and publish how this rank's blocks can be had: neighbor_publish.cc.
    std::uint64_t send_total() const;
    std::uint64_t table_bytes() const;
    // The size of the blocks that it copies out, with their table. (Plain forms: with those that nobody
    // reads.)
    std::uint64_t out_bytes() const;
    std::span<const std::int32_t> unread() const;
    // Whether others touch the send buffer: those that copy along the curve do, even for what a rank sends to
    // itself.
    bool is_exposed() const { return near_.has_readers || writes_; }
    bool wants_copies() const;
    // Whether readers fetch this rank's blocks through the kernel: private ones that are too many to be
    // staged.
    bool goes_through_kernel() const;
    // Whether blocks with holes can go by their layouts. Not where peers write, or messages carry them to
    // other nodes.
    bool can_lay_out(const blocks::Buffer& buffer) const;
    // How blocks with holes are had that are too many for the stage: by their layouts, from a copy of any
    // size, or else as messages.
    enum class Holes { by_layout, gathered, packed };
    blocks::Side plan(const blocks::Buffer& buffer, bool exposed, blocks::Which which,
                      Holes holes = Holes::packed);
    void plan_send();
    void plan_recv();
    // One piece of the ring for all that this rank publishes: tables, then copies.
    void place();
    void publish_copies(std::byte* scratch);
    void copy_run(std::byte* scratch, comm::Neighbors::Run run);
    void publish_places(std::byte* send_table, std::byte* recv_table, std::byte* layouts);
    void publish_all();
    // Starts to send the blocks that one rank of the node receives.
    void send_to(std::int32_t mate);
    bool is_read_in_place() const {
        return near_.has_readers && !copies_out_ && !by_message_ && send_.where != blocks::Where::ring;
    }
    // Whether a rank's blocks are read through the kernel.
    bool is_private(std::int32_t owner) const {
        const channel::Slot& slot = channel_.slot_of(owner);
        return owner != comm_.rank && slot.publish == channel::Publish::piped &&
               slot.direct.piped == channel::Piped::address;
    }
    void read_private(std::int32_t owner, blocks::Block from, blocks::Block to, std::uint64_t bytes);
    // Asks those whose blocks the kernel has refused to send them.
    void ask_for_messages();
    // Sends to those who ask. Requires: the readers are done.
    void answer_readers();

    // Where in a neighbour's slot this rank's blocks will be.
    channel::Prefetch prefetch_from(std::int32_t peer) const {
        if (!fetches_ahead_) return {};
        const std::uint64_t bytes = call_.local.recv.block_bytes;
        const std::byte* blocks = channel_.slot_of(peer).inlined;
        if (!personal_) return {blocks, bytes};
        const auto edges = graph_.incoming_from(peer);
        if (edges.empty()) return {};
        const auto first = base::index(edges.front().sent);
        return {blocks + first * bytes, (base::index(edges.back().sent) + 1 - first) * bytes};
    }

    blocks::Block own(schedule::Area area, std::int32_t index) const {
        const blocks::Side& side = area == schedule::Area::send ? send_ : recv_;
        COCO_CHECK_DEAR(index >= 0 && (!sized_ || base::index(index) < side.blocks.size()),
                        "an own block is one of those of its side");
        if (sized_)
            return {base::displaced(side.base, side.blocks[index].displacement_bytes),
                    side.blocks[index].bytes};
        const blocks::Buffer& buffer = area == schedule::Area::send ? call_.local.send : call_.local.recv;
        return {base::displaced(side.base, index * side.stride_bytes), buffer.block_bytes};
    }

    blocks::Block own(schedule::Place place) const { return own(place.area, place.index); }

    // Whether the block at a place may have holes, which its layout tells.
    bool has_layout(schedule::Place place) const {
        if (place.owner != comm_.rank)
            return channel_.slot_of(place.owner).publish == channel::Publish::piped;
        return (place.area == schedule::Area::recv ? recv_ : send_).where == blocks::Where::pipe;
    }
    blocks::BlockLayout layout_of(schedule::Place place) const {
        if (!has_layout(place)) return {};
        if (place.owner != comm_.rank)
            return blocks::piped_layout_of(channel_, place.owner, sized_ ? place.index : 0);
        const bool is_received = place.area == schedule::Area::recv;
        return (is_received ? call_.local.recv : call_.local.send).layout_of_block(place.index);
    }

    blocks::Block block_of(schedule::Place place) {
        if (place.area != schedule::Area::recv &&
            channel_.slot_of(place.owner).publish == channel::Publish::messages)
            return {nullptr, 0};
        const blocks::Row& at = row(
            place.area == schedule::Area::recv ? schedule::Area::recv : schedule::Area::send, place.owner);
        if (!sized_) {
            const channel::DirectBody& direct = channel_.slot_of(place.owner).direct;
            std::uint64_t bytes = !writes_                             ? call_.local.recv.block_bytes
                                  : place.area == schedule::Area::recv ? direct.recv_bytes
                                                                       : direct.send_bytes;
            return {base::displaced(at.base, place.index * at.stride_bytes), bytes};
        }
        const blocks::Table& table = store_.tables[place.owner];
        if (place.area == schedule::Area::recv)
            return {base::displaced(at.base, table.recv[place.index].displacement_bytes),
                    table.recv[place.index].bytes};
        if (table.staged != nullptr)
            return {at.base + table.staged[place.index].offset_bytes, table.staged[place.index].bytes};
        return {base::displaced(at.base, table.send[place.index].displacement_bytes),
                table.send[place.index].bytes};
    }

    void arrived(std::int32_t peer);

    // Starts to receive all messages of a rank of the node, in the order in which it sends them.
    void receive_all(std::int32_t peer);
    // Where a block with a layout is received to. Returns: contiguous room, from which scatter_received()
    // copies it.
    std::byte* gathered(schedule::Place received);
    void scatter_received();

    // Where others wrote to our buffer, only we can tell that it was too short.
    void look_for_truncation();

    const Order order_;
    const NeighborPlan plan_;
    comm::Neighbors& near_;
    const schedule::Neighborhood& graph_;
    const bool sized_, personal_;
    bool writes_;  // the algorithm writes to receive buffers, and all ranks are ready for that
    const std::uint32_t expected_;
    bool copies_out_ = false, by_message_ = false, ready_for_writers_ = false;
    bool shows_layouts_ = false;        // readers copy this rank's blocks by their layouts
    std::vector<std::int32_t> unread_;  // ranks whose blocks the kernel has refused
    std::vector<std::byte> copied_;     // for reads through the kernel
    struct Gathered {
        schedule::Place received;
        std::byte* at;
    };
    std::vector<Gathered> gathered_;  // blocks with layouts that came as messages
    std::uint64_t gathered_bytes_ = 0;
    bool fetches_ahead_ = false;  // neighbours' blocks are likely in their slots
};

}  // namespace coco::exec
