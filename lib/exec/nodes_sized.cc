// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges over several nodes whose blocks have sizes of their own: alltoallv, alltoallw, allgatherv.
//
// Source: Xu, Venkata, Graham, Wang, Liu, Yu, SLOAVx: Scalable LOgarithmic AlltoallV Algorithm for
// Hierarchical Multicore Systems, CCGrid 2013, sections III and IV. As there, scratch is a table of elements,
// each where a block lies and how long it is, so that copies to scratch move no data; a message brings its
// elements' lengths and data, its size told before. Here one message brings the lengths, and the data as long
// as they are small, and a second only data that do not fit; large blocks do not go round but straight to
// their receiver, which the lengths announce; what a node's ranks owe others is read where it lies on the
// shared heap, instead of being gathered along a tree.
//
// No rank knows another's sizes, so what all must know travels along: that a rank cannot take part, and the
// largest block. Every exchange brings a block, if an empty one, from each rank to each other, and what is
// sent on is sent after what came was read: so in the end all have heard of all.
#include <algorithm>
#include <atomic>
#include <vector>

#include "base/check.h"
#include "base/index.h"
#include "exec/element_flight.h"
#include "heap/heap.h"
#include "heap/segment.h"
#include "messages/opening.h"
#include "messages/scratch.h"
#include "os/cpu.h"

namespace coco::exec {
namespace {

using blocks::BlockAt;
using blocks::Where;
using blocks::Which;
using messages::Announcement;
using messages::Item;
using messages::Opening;
using messages::Post;
using schedule::Area;
using schedule::Milestone;
using schedule::Place;

constexpr std::size_t kStraightWindow = 32;

// The announcement of a rank, in its scratch behind the elements.
struct Board {
    std::atomic<std::uint64_t> refused, largest_bytes;  // the owner writes while mates read
    std::uint64_t unused[2];
};
static_assert(sizeof(Board) == sizeof(messages::Element));

class SizedNodesFlight final : public ElementFlight {
  public:
    // Requires: agree_on_scratch() said yes.
    SizedNodesFlight(const Order& order, const schedule::Schedule& schedule)
        : ElementFlight(order, order.comm.ranks),
          on_node_(std::ranges::any_of(schedule.steps,
                                       [](const schedule::Step& step) {
                                           return step.act == schedule::Act::raise &&
                                                  step.milestone == schedule::kArrived;
                                       })),
          schedule_(schedule),
          messages_(*this, lane_, messages::opened_format(personal_, comm_.ranks),
                    {mpi::Wire::kFirstTag, mpi::Wire::kSecondTag}) {
        plan();
        outcome.staged = is_staged();
    }

    void run() {
        place();
        walk(schedule_, *this);
        if (!announced_.refused && personal_) go_straight();
        if (exposed_ && !send_.is_guarded())
            for (const std::int32_t mate : comm_.mates) channel_.wait_milestone(mate, schedule::kDone);
        finish();
    }

    void copy(Place source, Place target) { put(target, element(source)); }

    void wait(std::int32_t peer, Milestone milestone) {
        if (milestone != schedule::kArrived) channel_.wait_milestone(peer, milestone);
        if (row(Area::scratch, peer).base == nullptr) meet(peer);
        const Board& board = *reinterpret_cast<const Board*>(row(Area::scratch, peer).base);
        // Relaxed: the wait for the milestone has acquired what was written before it.
        announced_.hear({board.refused.load(std::memory_order_relaxed),
                         board.largest_bytes.load(std::memory_order_relaxed)});
    }

    void raise(Milestone milestone) {
        COCO_CHECK_DEAR(board_ != nullptr, "a rank announces on a board");
        board_->refused.store(announced_.refused, std::memory_order_relaxed);
        board_->largest_bytes.store(announced_.largest_bytes, std::memory_order_relaxed);
        if (milestone != schedule::kArrived) return channel_.raise(milestone);
        open_slot();
        slot_->publish = channel::Publish::staged;
        slot_->scratch_at = channel_.offset_of(row(Area::scratch, comm_.rank).base);
        publish();
    }

    void send(std::int32_t to, Place first, std::int32_t blocks) { messages_.send(to, first, blocks); }
    void receive(std::int32_t from, Place first, std::int32_t blocks) {
        messages_.receive(from, first, blocks);
    }
    void complete(std::int32_t left) { messages_.complete(left); }

    // For SizedMessages.
    void write_opening(std::byte* memory, std::int32_t blocks) {
        *reinterpret_cast<Opening*>(memory) = {announced_, static_cast<std::uint32_t>(blocks), signature_};
    }
    void read_opening(const std::byte* memory, std::int32_t from, std::int32_t blocks) {
        const Opening& opening = *reinterpret_cast<const Opening*>(memory);
        if (opening.signature != signature_ || opening.blocks != static_cast<std::uint32_t>(blocks))
            stop_unequal(comm_, from);
        announced_.hear(opening.announced);
    }
    Item item_at(Place place) {
        const Element e = element(place);
        return {data_of(e), e.bytes, personal_ && e.bytes > messages_.format().straight_bytes};
    }
    void put_item(Place place, const Item& item) { put(place, own(item.at, item.bytes, item.straight)); }
    // Memory for a message that comes: in the inbox where mates read it.
    std::byte* room_for_coming(const messages::Load<messages::Cargo>& load, std::uint64_t bytes) {
        bool private_will_do = !exposed_ || refusal_ != stats::Reason::none;  // mates know, and do not look
        if (private_will_do) return lane_.post.memory_of(lane_.post.take_parcel(channel_, bytes));
        std::uint64_t begin = inbox_taken_;
        inbox_taken_ += os::line_up(bytes);
        if (inbox_taken_ > Post::half_bytes(lane_.post.inbox)) return room_for_surplus(load.peer, bytes);
        return Post::half(channel_, lane_.post.inbox) + begin;
    }

  private:
    void plan() {
        exposed_ = on_node_ && !comm_.mates.empty();
        std::uint64_t total = call_.local.send.total_bytes;
        send_ =
            plan_side(store_, call_.local.send,
                      {.exposed = exposed_,
                       .must_copy = (common().in_place && personal_) || (exposed_ && total <= kCopyOutBytes),
                       .if_private = stats::Reason::send_private,
                       .block_bytes = 0,
                       .bytes = total,
                       .copies_any = true},
                      Which::send);
        // In place, the user's blocks are needed until it is known that nobody refuses.
        recv_ = plan_side(store_, call_.local.recv,
                          {.exposed = false,
                           .must_copy = common().in_place,
                           .if_private = stats::Reason::none,
                           .block_bytes = 0,
                           .bytes = call_.local.recv.total_bytes},
                          Which::recv);
        refusal_ = send_.refusal;
        if (refusal_ == stats::Reason::none && exposed_ && !make_inbox())
            refusal_ = stats::Reason::no_shared_heap;
        announced_.refused = refusal_ != stats::Reason::none;
    }

    // Messages that come for mates have to lie on the shared heap, however large they may be. The inbox is
    // made before the first step: later there is no way back. Returns: whether there is an inbox that is
    // large enough.
    bool make_inbox() {
        std::uint64_t most = 0;
        for (const schedule::Step& step : schedule_.steps) {
            if (step.act != schedule::Act::receive) continue;
            most += messages_.format().most_bytes(step.count) + 2 * os::kLineBytes;
            if (personal_) most += base::index(step.count) * messages_.format().straight_bytes;
        }
        if (most != 0 && !personal_) most += call_.local.recv.total_bytes;
        most = Post::kHalves * os::line_up(most);
        if (most <= lane_.post.inbox.bytes) return true;
        return lane_.post.grow(channel_, lane_.post.inbox, std::max<std::uint64_t>(most, heap::kSurelyShared),
                               true);
    }

    void place() {
        std::byte* scratch = messages::take_scratch(channel_, lane_.post);
        if (send_.where == Where::ring)
            send_.base = channel_.stage_bytes(os::line_up(call_.local.send.total_bytes));
        board_ = new (begin_scratch(scratch, schedule_.scratch_blocks)) Board{};
        for (std::int32_t mate : comm_.mates) row(Area::scratch, mate).base = nullptr;
        lay_out(recv_, call_.local.recv, recv_.base, 0, store_.recv_blocks);
        fill_side(recv_, call_.local.recv, 0);  // bytes that are not received must stay as they are
        if (announced_.refused) return;
        lay_out(send_, call_.local.send, send_.base, 0, store_.send_blocks);
        fill_side(send_, call_.local.send, 0);
        for (const BlockAt& block : send_.blocks)
            announced_.largest_bytes = std::max(announced_.largest_bytes, block.bytes);
    }

    void meet(std::int32_t peer) {
        channel_.wait_arrived(peer);
        check_signature(comm_, channel_, peer, signature_);
        row(Area::scratch, peer).base = channel_.at(peer, channel_.slot_of(peer).scratch_at);
    }

    // Called after all else. If some rank refuses, all hand the call back.
    void finish() {
        outcome.largest_block_bytes = announced_.largest_bytes;
        if (announced_.refused)
            outcome.reason = refusal_ != stats::Reason::none ? refusal_ : stats::Reason::peer;
        else
            blocks::empty_side(recv_, call_.local.recv, 0);
    }

    Element element(Place place) {
        if (place.area == Area::scratch) return in_scratch(place);
        if (place.area == Area::recv) return received_[base::index(place.index)];
        const bool refuses = announced_.refused && refusal_ != stats::Reason::none;
        return refuses ? own(nullptr, 0) : own_block(place.index);
    }
    void put(Place target, const Element& element) {
        if (target.area == Area::scratch)
            in_scratch(target) = element;
        else if (announced_.refused)
            received_[base::index(target.index)] = element;
        else
            take(target.index, element);
    }

    // More comes than this rank has room for itself, in a gather that MPI would call wrong: its mates may
    // have the room.
    std::byte* room_for_surplus(std::int32_t from, std::uint64_t bytes) {
        const std::size_t parcel = lane_.post.take_parcel(channel_, bytes, true);
        if (!heap::is_shared(lane_.post.memory_of(parcel), bytes)) stop_unequal(comm_, from);
        lane_.post.keep_parcel_for_mates(parcel);
        return lane_.post.memory_of(parcel);
    }

    // A copy of a block that was received elsewhere, cut to the bytes that there is room for.
    struct Cut {
        std::byte *to, *from;
        std::uint64_t bytes;
    };

    // Exchanges long blocks; all ranks go through the distances in one order.
    void go_straight() {
        for (std::int32_t distance = 1; distance < comm_.ranks; ++distance) {
            start_straight(distance);
            ExchangeFlight::complete(kStraightWindow);
        }
        ExchangeFlight::complete(0);
        for (const Cut& cut : cuts_) blocks::copy_block(cut.to, cut.from, cut.bytes);
    }
    void start_straight(std::int32_t distance) {
        COCO_CHECK_DEAR(distance > 0 && distance < comm_.ranks, "long blocks go to other ranks");
        std::int32_t to = (comm_.rank + distance) % comm_.ranks;
        std::int32_t sender = (comm_.rank - distance + comm_.ranks) % comm_.ranks;
        if (received_[base::index(sender)].straight != 0) receive_straight(sender);
        const bool by_message = !on_node_ || comm_.map.node[to] != comm_.map.node[comm_.rank];
        const BlockAt& block = send_.blocks[base::index(to)];
        if (by_message && block.bytes > messages_.format().straight_bytes)
            lane_.post.wire->send(to, base::displaced(send_.base, block.displacement_bytes), block.bytes,
                                  mpi::Wire::kThirdTag);
    }
    // As much is asked for as is sent, wherever that fits: the MPI library must not see the program's error.
    void receive_straight(std::int32_t from) {
        const BlockAt& room = recv_.blocks[base::index(from)];
        std::byte* to = base::displaced(recv_.base, room.displacement_bytes);
        std::uint64_t told = received_[base::index(from)].bytes;
        std::uint64_t bytes = told < messages_.format().longest_told() ? told : std::max(room.bytes, told);
        if (room.bytes < bytes) {
            // Nobody knows how much comes.
            if (told == messages_.format().longest_told()) stop_unequal(comm_, from);
            outcome.truncated = true;
            cuts_.push_back({to, lane_.post.memory_of(lane_.post.take_parcel(channel_, bytes)), room.bytes});
            to = cuts_.back().from;
        }
        lane_.post.wire->receive(from, to, bytes, mpi::Wire::kThirdTag);
    }

    const bool on_node_;  // the ranks of a node share scratch in this schedule
    const schedule::Schedule& schedule_;
    bool exposed_ = false;
    std::uint64_t inbox_taken_ = 0;
    stats::Reason refusal_ = stats::Reason::none;  // this rank's own
    Announcement announced_;
    Board* board_ = nullptr;
    std::vector<Cut> cuts_;
    SizedMessages<SizedNodesFlight> messages_;
};

}  // namespace

Outcome run_sized_over_nodes(const Order& order) {
    COCO_CHECK_DEAR(order.call.common.sized && order.lane.post.wire != nullptr,
                    "a sized exchange over nodes has a wire");
    comm::Schedules::Kept& kept = order.comm.kept_schedule(
        {&order.algorithm, base::exchange_of(order.call.common.collective), 0, 1, order.parameters});
    // A board, and an element for each block.
    if (!messages::agree_on_scratch(
            order.comm.handle, order.lane.channel, order.lane.post, kept.fits_on(order.lane.number).sized,
            {kept.schedule->scratch_blocks + 1, sizeof(messages::Element), !order.comm.mates.empty()}))
        return run_nothing(order, stats::Reason::no_shared_heap);
    const Outcome outcome = fly<SizedNodesFlight>(order, *kept.schedule);
    if (base::is_personal(order.call.common.collective))
        order.comm.choices.note_largest_block(outcome.reason != stats::Reason::none,
                                              outcome.largest_block_bytes);
    return outcome;
}

}  // namespace coco::exec
