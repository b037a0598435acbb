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
#include <cstring>

#include "base/of_thread.h"
#include "comm/neighbors.h"
#include "exec/copy_block.h"
#include "exec/exchange.h"
#include "exec/scratch.h"
#include "exec/walk.h"

namespace coco::exec {
namespace {

using schedule::Area;
using schedule::Milestone;
using schedule::Place;

// A block's in scratch, with its length and where it lies. A gathered block serves many receivers: it pays
// for longer to cross the network once. But nodes combine no longer blocks than in plain forms.
constexpr std::uint64_t kRoomBytes = kCombinedBytes, kGatheredRoomBytes = 16 * 1024;
constexpr std::uint64_t kStraight = std::uint64_t{1} << 63;  // of a length: the block is not here

// Beside a block. Lies in scratch, is written and read by all ranks of the node.
struct Element {
    std::uint64_t at;  // from the first byte of the owner's data
    std::uint64_t length;
};

// A bundle that comes; `number` among the messages of the call.
struct Coming {
    std::size_t number;
    std::int32_t first;
    std::int32_t blocks;
};

std::uint64_t room_bytes_of(const comm::ScheduleKey& key) {
    const bool gathered = key.exchange == algorithms::Exchange::allgather;
    return gathered && key.parameters.threshold == 0 ? kGatheredRoomBytes : kRoomBytes;
}

// A rank's scratch: elements, from the last block's to the first's, then the data. What is sent is put
// together behind that.
class SizedBundlesView : public ExchangeView {
  public:
    static constexpr bool kRows = false;

    SizedBundlesView(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                     const schedule::Schedule& schedule, std::uint64_t room_bytes)
        : ExchangeView(comm, call.common, algorithm),
          call_(call),
          next_message_(schedule.scratch_blocks),
          scratch_blocks_(schedule.scratch_blocks),
          graph_(comm.neighbors->graph_of(call.common.collective)),
          personal_(base::is_personal(call.common.collective)),
          data_bytes_(room_bytes - sizeof(Element)) {
        signature_ ^= kBundled;
    }

    // With those of its messages.
    static std::int32_t all_blocks(const schedule::Schedule& schedule) {
        std::int32_t blocks = schedule.scratch_blocks;
        for (const schedule::Step& step : schedule.steps)
            if (step.act == schedule::Act::send) blocks += step.count;
        return blocks;
    }

    // Requires: has_scratch().
    void prepare() {
        comm_.rows.resize(static_cast<std::size_t>(schedule::kAreas) * static_cast<std::size_t>(comm_.ranks));
        send_ = ready(call_.local.send, 0, comm_.send_blocks);
        recv_ = ready(call_.local.recv, 1, comm_.recv_blocks);
        row(Area::scratch, comm_.rank).base =
            take_scratch(comm_) + sizeof(Element) * static_cast<std::uint64_t>(scratch_blocks_);
        straight_.assign(static_cast<std::size_t>(graph_.recv_blocks), 0);
        send_straight();
    }

    void copy(Place source, Place target) {
        if (target.area == Area::scratch && source.area == Area::scratch)
            element(target) = element(source);  // to be sent: that gathers the data, which stays
        else if (target.area == Area::scratch)
            fill(target, send_.blocks[static_cast<std::size_t>(source.index)]);
        else if (source.area == Area::scratch)
            take(target.index, row(Area::scratch, source.owner).base, element(source));
        else
            take(target.index, send_.base, own_element(send_.blocks[static_cast<std::size_t>(source.index)]));
    }

    void wait(std::int32_t peer, Milestone milestone) {
        if (milestone != schedule::kArrived) return void(channel_.wait_milestone(peer, milestone));
        channel_.wait_arrived(peer);
        check_signature(comm_, peer, signature_);
        row(Area::scratch, peer).base = channel_.at(peer, channel_.slot_of(peer).scratch_at);
    }

    void raise(Milestone milestone) {
        if (milestone != schedule::kArrived) return channel_.raise(milestone);
        channel::Slot& slot = open_slot();
        slot.publish = channel::Publish::staged;
        slot.scratch_at = channel_.offset_of(row(Area::scratch, comm_.rank).base);
        publish(slot);
    }

    void send(std::int32_t to, Place first, std::int32_t blocks) {
        std::byte* message = data({first.owner, first.area, next_message_});
        next_message_ += blocks;
        auto* lengths = reinterpret_cast<std::uint64_t*>(message);
        std::byte* next = message + sizeof *lengths * static_cast<std::uint64_t>(blocks);
        for (std::int32_t i = 0; i < blocks; ++i) {
            const Place place{first.owner, first.area, first.index + i};
            lengths[i] = element(place).length;
            if ((lengths[i] & kStraight) != 0) continue;
            copy_block(next, block_at(place), lengths[i]);
            next += lengths[i];
        }
        comm_.wire->send(to, message, message_bytes(blocks, static_cast<std::uint64_t>(next - message)),
                         mpi::Wire::kBundleTag);
        ++messages_;
    }

    void receive(std::int32_t from, Place first, std::int32_t blocks) {
        comm_.wire->receive(from, data(first), most_bytes(blocks), mpi::Wire::kBundleTag);
        coming_.push_back({messages_++, first.index, blocks});
    }

    void complete(std::int32_t left) {
        comm_.complete(static_cast<std::size_t>(left));
        const std::size_t through = messages_ - static_cast<std::size_t>(left);
        for (; come_ < coming_.size() && coming_[come_].number < through; ++come_) unpack(coming_[come_]);
    }

    void finish() {
        for (const schedule::Edge& edge : graph_.incoming)
            if (straight_[static_cast<std::size_t>(edge.received)] != 0) receive_straight(edge);
        comm_.complete(requests_);
        empty_side(recv_, call_.local.recv, 0);
    }
    bool staged() const { return send_.where != Where::user || recv_.where != Where::user; }
    bool truncated() const { return truncated_; }

  private:
    Side ready(const Buffer& buffer, int room, std::vector<channel::BlockAt>& blocks) {
        Side side = plan_side(comm_, buffer,
                              {.exposed = false,
                               .must_copy = false,
                               .if_private = stats::Reason::none,
                               .block_bytes = 0,
                               .bytes = buffer.total_bytes},
                              room);
        lay_out(side, buffer, side.base, 0, blocks);
        fill_side(side, buffer, 0);  // what is not received must stay as it is
        return side;
    }

    std::byte* data(Place place) {
        return row(Area::scratch, place.owner).base + static_cast<std::uint64_t>(place.index) * data_bytes_;
    }
    Element& element(Place place) {
        return reinterpret_cast<Element*>(row(Area::scratch, place.owner).base)[-1 - place.index];
    }
    const std::byte* block_at(Place place) {
        return base::displaced(row(Area::scratch, place.owner).base,
                               static_cast<std::int64_t>(element(place).at));
    }
    static Element own_element(const channel::BlockAt& block) {
        return {static_cast<std::uint64_t>(block.displacement_bytes), block.bytes};
    }
    // A message has a length besides each block.
    bool is_straight(std::uint64_t bytes) const { return bytes > data_bytes_ - sizeof(std::uint64_t); }
    std::uint64_t most_bytes(std::int32_t blocks) const {
        return static_cast<std::uint64_t>(blocks) * data_bytes_;
    }
    // Only short messages may be shorter than their receiver asks for.
    std::uint64_t message_bytes(std::int32_t blocks, std::uint64_t filled_bytes) const {
        constexpr std::uint64_t kLong = 1 << 30;
        return most_bytes(blocks) > kLong ? most_bytes(blocks) : filled_bytes;
    }

    void fill(Place target, const channel::BlockAt& block) {
        std::byte* to = data(target);
        const bool straight = is_straight(block.bytes);
        element(target) = {static_cast<std::uint64_t>(target.index) * data_bytes_,
                           straight ? block.bytes | kStraight : block.bytes};
        if (!straight) copy_block(to, base::displaced(send_.base, block.displacement_bytes), block.bytes);
    }

    void take(std::int32_t index, const std::byte* base, Element source) {
        if ((source.length & kStraight) != 0) {
            straight_[static_cast<std::size_t>(index)] = 1;
            return;
        }
        const channel::BlockAt& room = recv_.blocks[static_cast<std::size_t>(index)];
        truncated_ |= source.length > room.bytes;
        copy_block(base::displaced(recv_.base, room.displacement_bytes),
                   base::displaced(base, static_cast<std::int64_t>(source.at)),
                   std::min(source.length, room.bytes));
    }

    void unpack(const Coming& bundle) {
        const Place first{comm_.rank, Area::scratch, bundle.first};
        const auto* lengths = reinterpret_cast<const std::uint64_t*>(data(first));
        std::uint64_t at = static_cast<std::uint64_t>(bundle.first) * data_bytes_ +
                           sizeof *lengths * static_cast<std::uint64_t>(bundle.blocks);
        for (std::int32_t i = 0; i < bundle.blocks; ++i) {
            element({comm_.rank, Area::scratch, bundle.first + i}) = {at, lengths[i]};
            if ((lengths[i] & kStraight) == 0) at += lengths[i];
        }
    }

    // From the start: their receivers come to them when all else is done.
    void send_straight() {
        for (std::int32_t i = 0; i < graph_.send_blocks(); ++i) {
            const std::int32_t to = graph_.destinations[static_cast<std::size_t>(i)];
            if (to < 0 || to == comm_.rank) continue;
            const channel::BlockAt& block = send_.blocks[static_cast<std::size_t>(personal_ ? i : 0)];
            if (is_straight(block.bytes))
                comm_.wire->start_send(to, base::displaced(send_.base, block.displacement_bytes), block.bytes,
                                       mpi::Wire::kThirdTag, requests_);
        }
    }
    void receive_straight(const schedule::Edge& edge) {
        const channel::BlockAt& room = recv_.blocks[static_cast<std::size_t>(edge.received)];
        comm_.wire->start_receive(edge.sender, base::displaced(recv_.base, room.displacement_bytes),
                                  room.bytes, mpi::Wire::kThirdTag, requests_);
    }

    const Call& call_;
    std::int32_t next_message_;  // block of scratch
    const std::int32_t scratch_blocks_;
    const schedule::Neighborhood& graph_;
    const bool personal_;
    const std::uint64_t data_bytes_;  // of a block: as much as its share of a message
    Side send_, recv_;
    bool truncated_ = false;
    std::size_t messages_ = 0, come_ = 0;

    // Kept by the thread, so that calls allocate nothing once they have grown.
    template <class Things>
    static Things& kept() {
        auto& things = base::of_thread<Things, SizedBundlesView>();
        things.clear();
        return things;
    }
    std::vector<char>& straight_ = kept<std::vector<char>>();  // by receive block
    std::vector<Coming>& coming_ = kept<std::vector<Coming>>();
    mpi::Requests& requests_ = kept<mpi::Requests>();
};

}  // namespace

Outcome run_sized_bundles(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                          comm::Comm::Kept& kept) {
    const std::uint64_t room_bytes = room_bytes_of(kept.key);
    if (!has_scratch(comm, kept.sized_fit, SizedBundlesView::all_blocks(*kept.schedule), room_bytes)) {
        comm.channel.raise(schedule::kDone);
        return {.reason = stats::Reason::no_shared_heap};
    }
    SizedBundlesView view(comm, call, algorithm, *kept.schedule, room_bytes);
    view.prepare();
    walk(*kept.schedule, view);
    view.finish();
    return {.staged = view.staged(), .truncated = view.truncated(), .ran = &algorithm};
}

}  // namespace coco::exec
