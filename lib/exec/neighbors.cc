// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges among neighbours, all five forms: within a node through the shared heap, between nodes by a
// message for each edge.
//
// How a rank's blocks can be had is its own affair: in the slot, on the stage ring, where they lie, or, when
// they are too many and private, by messages; who reads them follows. So nobody refuses, ranks wait for
// nobody but those whose buffers they touch, and ranks that think of different sizes may choose unlike as
// long as the receivers copy. Where others write to receive buffers, all ranks of the node have to be ready
// for that: with few bytes they always are; else all look at all slots, and if one is not, the receivers
// copy.
//
// Between nodes messages may be combined (`combining`). A rank that takes part must know that all who share
// neighbours with it do; it knows their block sizes, as blocks that go to one rank are of one size. So who
// sends blocks of such size that they are better sent straight is alone in that with nobody. In v and w forms
// the lengths travel along (carrier.h).
#include <algorithm>
#include <optional>

#include "comm/neighbors.h"
#include "exec/carrier.h"
#include "exec/copy_block.h"
#include "exec/exchange.h"
#include "exec/walk.h"

namespace coco::exec {
namespace {

using comm::BlockAt;
using comm::Publish;
using comm::Slot;
using comm::StagedBlock;
using schedule::Area;
using schedule::Edge;
using schedule::Milestone;
using schedule::Place;

// Of a table of blocks: two of them and two sides fit the stage ring.
constexpr std::uint64_t kTableBytesMost = (comm::kStageBytes - 2 * kSideLimitBytes) / 2;

// Plain blocks above this go straight: messages are combined to save their number, at the cost of bytes.
constexpr std::uint64_t kCombinedBytes = 4096;

std::uint64_t total_of(const Buffer& buffer, bool sized) {
    return sized ? buffer.total_bytes : static_cast<std::uint64_t>(buffer.block_count) * buffer.block_bytes;
}

class NeighborView : public ExchangeView {
  public:
    NeighborView(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm)
        : ExchangeView(comm, call.common, algorithm),
          call_(call),
          near_(*comm.neighbors),
          graph_(near_.graph_of(call.common.collective)),
          wire_(comm.wire != nullptr ? *comm.wire : *near_.wire),
          sized_(call.common.sized),
          personal_(algorithms::exchange_of(call.common.collective) == algorithms::Exchange::alltoall),
          writes_(algorithm.writes_peer_recv),
          expected_(signature(call.local.recv)) {
        signature_ = signature(call.local.send);
        std::uint64_t blocks = personal_ ? static_cast<std::uint64_t>(near_.most_blocks) : 1;
        std::uint64_t bytes = blocks * call.local.recv.block_bytes;
        if (!sized_ && bytes <= comm::kInlineBytes) soon_bytes_ = bytes;
    }

    // Makes room for the scratch that only this rank uses, behind the blocks that it stages: combined
    // messages, first those that come in.
    void carry(std::int32_t scratch_blocks, const schedule::CombinedReceives* receives) {
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

    // Publishes. Returns: whether the algorithm can be walked; else receivers have to copy.
    bool prepare() {
        auto ranks = static_cast<std::size_t>(comm_.ranks);
        comm_.rows.resize(schedule::kAreas * ranks);
        comm_.tables.resize(ranks);
        plan_send();
        plan_recv();
        place();
        if (!writes_) return true;
        publish_all();
        for (std::int32_t r : comm_.mates) {
            comm_.wait_arrived(r);
            writes_ = writes_ && comm_.slot_of(r).writer == slot_->writer;
        }
        writes_ = writes_ && slot_->writer != 0;
        if (writes_ && sized_) look_for_truncation();
        return writes_;
    }

    static constexpr bool kRows = false;
    void copy(Place source, Place target) {
        if (is_carried(source) || is_carried(target) || source.area == Area::recv)
            return copy_combined(source, target);
        if (target.area == Area::scratch) return;  // filled in place()
        Spot from = source.owner == comm_.rank ? own(Area::send, source.index) : spot_of(source);
        if (from.at == nullptr) return;  // it comes as a message
        Spot to = target.owner == comm_.rank ? own(Area::recv, target.index) : spot_of(target);
        if (target.owner == comm_.rank) truncated_ |= from.bytes > to.bytes;
        copy_block(to.at, from.at, std::min(from.bytes, to.bytes));
    }

    void wait(std::int32_t peer, Milestone milestone) {
        if (milestone == schedule::kArrived) {
            comm_.wait_arrived(peer, {comm_.slot_of(peer).inlined, soon_bytes_});
            arrived(peer);
        } else if (writes_ || is_read_in_place()) {
            comm_.wait_milestone(peer, milestone);
        }
    }
    void raise(Milestone milestone) {
        if (milestone != schedule::kArrived) return comm_.raise(milestone);
        publish_all();
    }

    void send(std::int32_t to, Place first, std::int32_t blocks) {
        if (carrier_) {
            std::vector<Item> items;
            for (std::int32_t i = 0; i < blocks; ++i)
                items.push_back(item_of({first.owner, first.area, first.index + i}));
            return carrier_->send(to, items);
        }
        Spot block = own(first);
        comm_.wire->send(to, block.at, block.bytes * static_cast<std::uint64_t>(blocks));
    }
    void receive(std::int32_t from, Place first, std::int32_t blocks) {
        if (carrier_) return carrier_->receive(from, first, blocks);
        Spot block = own(first);
        comm_.wire->receive(from, block.at, block.bytes * static_cast<std::uint64_t>(blocks));
    }
    void complete(std::int32_t left) {
        if (carrier_) return carrier_->complete([this](Place to, const Item& item) { put(to, item); });
        comm_.complete(static_cast<std::size_t>(left));
    }

    // readers: the ranks that may be reading this one's buffers. Requires: the schedule has been walked.
    void finish(std::span<const std::int32_t> readers) {
        if (!writes_ && !algorithm_.reads_peer_send && is_read_in_place())
            for (std::int32_t r : readers) comm_.wait_milestone(r, schedule::kDone);
        if (carrier_) go_straight();
        comm_.complete(near_.requests);
        empty_side(recv_, call_.local.recv, call_.local.recv.block_bytes);
    }
    bool staged() const { return by_message_ || send_.where != Where::user || recv_.where != Where::user; }
    bool truncated() const { return truncated_; }

  private:
    std::uint32_t signature(const Buffer& side) const {
        CommonFacts facts{.collective = common_.collective};
        if (!sized_) facts.block_bytes = side.block_bytes;
        return signature_of(facts);
    }

    std::uint64_t send_total() const { return total_of(call_.local.send, sized_); }
    std::uint64_t table_bytes() const {
        return sized_ ? call_.local.send.blocks.size() * sizeof(StagedBlock) : 0;
    }

    // Others copy along the curve, even what a rank sends to itself.
    bool is_exposed() const { return near_.has_readers || writes_; }

    bool wants_copies() const {
        const Buffer& send = call_.local.send;
        if (!near_.has_readers || algorithm_.reads_peer_send) return false;
        if (table_bytes() + send_total() > kSideLimitBytes) return false;
        return !sized_ || send_total() <= eager_bytes(comm_) || send.packer != nullptr ||
               !is_shared(send, send.block_bytes);
    }

    Side plan(const Buffer& buffer, bool exposed, int room) {
        return plan_side(comm_, buffer,
                         {.exposed = exposed,
                          .must_copy = false,
                          .if_private = stats::Reason::send_private,
                          .block_bytes = buffer.block_bytes,
                          .bytes = total_of(buffer, sized_)},
                         room);
    }

    void plan_send() {
        copies_out_ = wants_copies();
        send_ = plan(call_.local.send, is_exposed() && !copies_out_, 0);
        bool long_table = sized_ && call_.local.send.blocks.size() * sizeof(BlockAt) > kTableBytesMost;
        by_message_ = send_.refusal != stats::Reason::none || (long_table && is_exposed() && !copies_out_);
        if (by_message_) send_ = plan(call_.local.send, false, 0);
    }

    void plan_recv() {
        const Buffer& recv = call_.local.recv;
        recv_ = plan(recv, writes_, 1);
        bool long_table = sized_ && recv.blocks.size() * sizeof(BlockAt) > kTableBytesMost;
        ready_for_writers_ = writes_ && !by_message_ && recv_.refusal == stats::Reason::none && !long_table;
        if (writes_ && !ready_for_writers_) recv_ = plan(recv, false, 1);
    }

    // One piece of the ring for all that this rank publishes: tables, then copies.
    void place() {
        slot_ = &open_slot();
        slot_->writer = ready_for_writers_
                            ? static_cast<std::uint16_t>(&algorithm_ - algorithms::registry().data() + 1)
                            : std::uint16_t{0};
        const Buffer &send = call_.local.send, &recv = call_.local.recv;
        std::uint64_t out_bytes = copies_out_ ? table_bytes() + send_total() : 0;
        bool inlined = out_bytes <= comm::kInlineBytes;
        bool has_table = sized_ && is_exposed() && !copies_out_ && !by_message_;
        std::uint64_t send_table = has_table ? line_up(send.blocks.size() * sizeof(BlockAt)) : 0;
        std::uint64_t recv_table =
            sized_ && ready_for_writers_ ? line_up(recv.blocks.size() * sizeof(BlockAt)) : 0;
        std::uint64_t out = inlined ? 0 : line_up(out_bytes);
        std::uint64_t send_bytes = send_.where == Where::ring ? line_up(send_total()) : 0;
        std::uint64_t recv_bytes = recv_.where == Where::ring ? line_up(total_of(recv, sized_)) : 0;
        std::uint64_t all = send_table + recv_table + out + send_bytes + recv_bytes;
        std::byte* stage = all != 0 ? comm_.stage_bytes(all) : nullptr;
        std::byte* copies = stage + send_table + recv_table + out;
        lay_out(send_, send, send_.where == Where::ring ? copies : send_.base, send.block_bytes,
                comm_.send_blocks);
        lay_out(recv_, recv, recv_.where == Where::ring ? copies + send_bytes : recv_.base, recv.block_bytes,
                comm_.recv_blocks);
        fill_side(send_, send, send.block_bytes);
        // What nobody sends must stay as it is.
        fill_side(recv_, recv, recv.block_bytes);
        if (copies_out_)
            publish_copies(inlined ? slot_->inlined : stage, inlined);
        else
            publish_places(stage, stage + send_table);
    }

    void publish_copies(std::byte* scratch, bool inlined) {
        constexpr std::int32_t kNoneOwn = -1;
        const Buffer& send = call_.local.send;
        if (sized_)
            copy_out(scratch, send_.base, send_.blocks, kNoneOwn);
        else if (send_.stride_bytes == static_cast<std::int64_t>(send.block_bytes))
            copy_block(scratch, send_.base, send_total());
        else
            for (std::int32_t i = 0; i < send.block_count; ++i)
                copy_block(scratch + static_cast<std::uint64_t>(i) * send.block_bytes,
                           send_.base + i * send_.stride_bytes, send.block_bytes);
        slot_->publish = inlined ? Publish::inlined : Publish::staged;
        if (!inlined) slot_->scratch_at = comm_.offset_of(scratch);
    }

    void publish_places(std::byte* send_table, std::byte* recv_table) {
        slot_->publish = by_message_ ? Publish::messages : Publish::direct;
        if (sized_ && is_exposed() && !by_message_)
            std::ranges::copy(send_.blocks, reinterpret_cast<BlockAt*>(send_table));
        if (sized_ && ready_for_writers_)
            std::ranges::copy(recv_.blocks, reinterpret_cast<BlockAt*>(recv_table));
        // Private buffers have no offset; nobody will use it.
        slot_->direct = {.send = {comm_.offset_of(send_.base), send_.stride_bytes},
                         .recv = {comm_.offset_of(recv_.base), recv_.stride_bytes},
                         .send_table = comm_.offset_of(send_table),
                         .recv_table = comm_.offset_of(recv_table),
                         .send_bytes = call_.local.send.block_bytes,
                         .recv_bytes = call_.local.recv.block_bytes};
    }

    void publish_all() {
        if (published_) return;
        publish(*slot_);
        if (!by_message_) return;
        for (std::int32_t i = 0; i < graph_.send_blocks(); ++i) {
            std::int32_t to = graph_.destinations[i];
            if (to < 0 || to == comm_.rank || comm_.map.node[to] != comm_.map.node[comm_.rank]) continue;
            Spot block = own(Area::send, personal_ ? i : 0);
            wire_.start_send(to, block.at, block.bytes, comm::Wire::kSecondTag, near_.requests);
        }
    }

    bool is_read_in_place() const {
        return near_.has_readers && !copies_out_ && !by_message_ && !send_.is_guarded();
    }

    Spot own(Area area, std::int32_t index) const {
        const Side& side = area == Area::send ? send_ : recv_;
        if (sized_) return {side.base + side.blocks[index].displacement_bytes, side.blocks[index].bytes};
        const Buffer& buffer = area == Area::send ? call_.local.send : call_.local.recv;
        return {side.base + index * side.stride_bytes, buffer.block_bytes};
    }

    // Several blocks of a message lie in carried scratch only.
    Spot own(Place place) { return is_carried(place) ? carried(place.index) : own(place.area, place.index); }

    bool is_carried(Place place) const {
        return place.area == Area::scratch && place.owner == comm_.rank && place.index >= staged_blocks_;
    }
    Spot carried(std::int32_t index) {
        const std::uint64_t in_bytes = call_.local.recv.block_bytes, out_bytes = call_.local.send.block_bytes;
        auto i = static_cast<std::uint64_t>(index - staged_blocks_),
             arriving = static_cast<std::uint64_t>(arriving_);
        if (i < arriving) return {near_.carried.data() + i * in_bytes, in_bytes};
        return {near_.carried.data() + arriving * in_bytes + (i - arriving) * out_bytes, out_bytes};
    }
    void copy_combined(Place source, Place target) {
        if (carrier_) return put(target, item_of(source));
        Spot to = own(target);
        copy_block(to.at, own(source).at, to.bytes);
    }

    // Of v and w forms.
    Item& carried_item(std::int32_t index) {
        return items_[static_cast<std::size_t>(index - staged_blocks_)];
    }
    Item item_of(Place place) {
        if (is_carried(place)) return carried_item(place.index);
        Spot block = own(place.area, place.index);
        bool straight = place.area == Area::send
                            ? block.bytes > kCombinedBytes
                            : comes_straight_[static_cast<std::size_t>(place.index)] != 0;
        return {block.at, block.bytes, straight};
    }
    void put(Place target, const Item& item) {
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

    // Long blocks of v and w forms, between nodes, where this tag has no others.
    void go_straight() {
        for (std::int32_t i = 0; i < graph_.send_blocks(); ++i) {
            const std::int32_t to = graph_.destinations[static_cast<std::size_t>(i)];
            if (to < 0 || comm_.map.node[to] == comm_.map.node[comm_.rank]) continue;
            const Item block = item_of({comm_.rank, Area::send, personal_ ? i : 0});
            if (block.straight)
                wire_.start_send(to, block.at, block.bytes, comm::Wire::kSecondTag, near_.requests);
        }
        for (const Edge& edge : graph_.incoming)
            if (comes_straight_[static_cast<std::size_t>(edge.received)]) {
                Spot to = own(Area::recv, edge.received);
                wire_.start_receive(edge.sender, to.at, to.bytes, comm::Wire::kSecondTag, near_.requests);
            }
    }

    Spot spot_of(Place place) {
        if (place.area != Area::recv && comm_.slot_of(place.owner).publish == Publish::messages)
            return {nullptr, 0};
        const comm::Row& at = row(place.area == Area::recv ? Area::recv : Area::send, place.owner);
        if (!sized_) {
            const comm::DirectBody& direct = comm_.slot_of(place.owner).direct;
            std::uint64_t bytes = !writes_                   ? call_.local.recv.block_bytes
                                  : place.area == Area::recv ? direct.recv_bytes
                                                             : direct.send_bytes;
            return {at.base + place.index * at.stride_bytes, bytes};
        }
        const comm::Table& table = comm_.tables[place.owner];
        if (place.area == Area::recv)
            return {at.base + table.recv[place.index].displacement_bytes, table.recv[place.index].bytes};
        if (table.staged != nullptr)
            return {at.base + table.staged[place.index].offset_bytes, table.staged[place.index].bytes};
        return {at.base + table.send[place.index].displacement_bytes, table.send[place.index].bytes};
    }

    void arrived(std::int32_t peer) {
        const Slot& slot = comm_.slot_of(peer);
        if (writes_) {
            constexpr std::uint32_t kCollectiveBits = 0xF;
            if (slot.writer != slot_->writer || ((slot.signature ^ signature_) & kCollectiveBits) != 0)
                stop_unequal(comm_, peer);
        } else {
            check_signature(comm_, peer, expected_);
        }
        comm::Row& send = row(Area::send, peer);
        auto block_bytes = static_cast<std::int64_t>(call_.local.recv.block_bytes);
        if (slot.publish == Publish::direct) {
            send = {comm_.at(peer, slot.direct.send.at), slot.direct.send.stride_bytes};
            row(Area::recv, peer) = {comm_.at(peer, slot.direct.recv.at), slot.direct.recv.stride_bytes};
            if (sized_)
                comm_.tables[peer] = {
                    nullptr, reinterpret_cast<const BlockAt*>(comm_.at(peer, slot.direct.send_table)),
                    reinterpret_cast<const BlockAt*>(comm_.at(peer, slot.direct.recv_table))};
        } else if (slot.publish == Publish::messages) {
            receive_all(peer);
        } else {
            std::byte* scratch = slot.publish == Publish::inlined ? const_cast<std::byte*>(slot.inlined)
                                                                  : comm_.at(peer, slot.scratch_at);
            send = {scratch, block_bytes};
            if (sized_)
                comm_.tables[peer] = {reinterpret_cast<const StagedBlock*>(scratch), nullptr, nullptr};
        }
    }

    // All messages of a rank of the node, in the order in which it sends them.
    void receive_all(std::int32_t peer) {
        auto [first, last] =
            std::ranges::equal_range(graph_.incoming, peer, {}, [](const Edge& e) { return e.sender; });
        for (; first != last; ++first) {
            Spot block = own(Area::recv, first->received);
            wire_.start_receive(peer, block.at, block.bytes, comm::Wire::kSecondTag, near_.requests);
        }
    }

    // Where others wrote to our buffer, only we can tell that it was too short.
    void look_for_truncation() {
        for (const Edge& edge : graph_.incoming)
            if (edge.sender != comm_.rank && comm_.map.node[edge.sender] == comm_.map.node[comm_.rank]) {
                arrived(edge.sender);
                Spot sent = spot_of({edge.sender, Area::send, personal_ ? edge.sent : 0});
                truncated_ |= sent.bytes > own(Area::recv, edge.received).bytes;
            }
    }

    const Call& call_;
    comm::Neighbors& near_;
    const schedule::Neighborhood& graph_;
    comm::Wire& wire_;
    const bool sized_, personal_;
    bool writes_;  // the algorithm, and all ranks can have it so
    const std::uint32_t expected_;
    bool copies_out_ = false, by_message_ = false, ready_for_writers_ = false, truncated_ = false;
    std::uint64_t soon_bytes_ = 0;                           // what a neighbour's slot may hold
    std::int32_t staged_blocks_ = INT32_MAX, arriving_ = 0;  // of scratch; the rest is carried
    std::optional<Carrier> carrier_;                         // v and w forms, where messages are combined
    std::vector<Item> items_;                                // carried
    std::vector<char> comes_straight_;                       // by receive block
    Side send_, recv_;
    Slot* slot_ = nullptr;
};

const schedule::EdgeShare& share_for(comm::Comm& comm, const Call& call, schedule::Cut cut) {
    if (const schedule::EdgeShare* known = comm::find_share(comm, call.common.collective, cut)) return *known;
    std::vector<std::uint64_t> weights;
    constexpr std::uint64_t kLeast = base::kCacheLineBytes;
    if (call.common.sized && cut != schedule::Cut::own)
        for (const BlockAt& block : call.local.recv.blocks) weights.push_back(std::max(block.bytes, kLeast));
    return comm::share_of(comm, call.common.collective, cut, weights);
}

struct Combined {
    const schedule::CombinedSends* sends = nullptr;
    const schedule::CombinedReceives* receives = nullptr;
};

// The pattern is made in the first call whatever the sizes, which ranks may think of unlike.
Combined combined_for(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                      const algorithms::Parameters& parameters) {
    if (!takes(algorithm, algorithms::Parameter::threshold)) return {};
    const schedule::Combining& all = comm::combining_of(comm, call.common.collective, parameters);
    auto combines = [&](const Buffer& side) {
        return call.common.sized || side.block_bytes <= kCombinedBytes;
    };
    return {combines(call.local.send) ? &all.sends : nullptr,
            combines(call.local.recv) ? &all.receives : nullptr};
}

const schedule::Schedule& schedule_for(comm::Comm& comm, const Call& call,
                                       const algorithms::Algorithm& algorithm, Combined combined) {
    return comm.schedule_for({.algorithm = &algorithm,
                              .exchange = algorithms::exchange_of(call.common.collective),
                              .root = 0,
                              .segments = 1,
                              .parameters = {},
                              .neighborhood = &comm.neighbors->graph_of(call.common.collective),
                              .share = &share_for(comm, call, algorithm.cut),
                              .combined_sends = combined.sends,
                              .combined_receives = combined.receives});
}

}  // namespace

Outcome run_neighbors(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                      const algorithms::Parameters& parameters) {
    const Combined combined = combined_for(comm, call, algorithm, parameters);
    const schedule::Schedule& chosen = schedule_for(comm, call, algorithm, combined);
    const algorithms::Algorithm& pull = plain_pull(call.common.collective);
    NeighborView view(comm, call, algorithm);
    if (combined.sends != nullptr || combined.receives != nullptr)
        view.carry(chosen.scratch_blocks, combined.receives);
    bool as_chosen = view.prepare();
    walk(as_chosen ? chosen : schedule_for(comm, call, pull, {}), view);
    view.finish(share_for(comm, call, schedule::Cut::own).touching);
    return {.staged = view.staged(), .truncated = view.truncated(), .ran = as_chosen ? &algorithm : &pull};
}

}  // namespace coco::exec
