// SPDX-License-Identifier: BSD-3-Clause
//
// The smallest exchanges: all that a rank owes fits into its slot, beside the epoch that announces it, so
// that a reader gets both with the same cache lines. The same eager schedule as ever, walked by the leanest
// flight.
#include <algorithm>

#include "base/check.h"
#include "base/index.h"
#include "exec/exchange_flight.h"
#include "exec/pipe.h"

namespace coco::exec {
namespace {

using blocks::BlockAt;
using blocks::Buffer;
using blocks::StagedBlock;
using channel::Prefetch;
using channel::Publish;
using schedule::Area;
using schedule::Milestone;
using schedule::Place;

// A flight in which all that this rank owes is in its slot. run() is inlined, so that the flight is kept in
// registers (alltoall of 8 B on 2 ranks: 38 of 927 instructions less).
class InlinedFlight {
  public:
    Outcome outcome;

    InlinedFlight(const Order& order, const schedule::Schedule& schedule)
        : comm_(order.comm),
          channel_(order.lane.channel),
          schedule_(schedule),
          send_(order.call.local.send),
          recv_(order.call.local.recv),
          signature_(signature_of(order.call.common)) {
        outcome.ran = &order.algorithm;
    }

    static constexpr bool kRows = false;
    void raise(Milestone milestone) {
        if (milestone == schedule::kDone) return channel_.raise(milestone);
        slot_->signature = signature_;
        slot_->publish = Publish::inlined;
        channel_.publish(*slot_);
    }

  protected:
    comm::Comm& comm_;
    channel::Channel& channel_;
    const schedule::Schedule& schedule_;
    const Buffer& send_;
    const Buffer& recv_;
    const std::uint32_t signature_;
    channel::Slot* slot_ = nullptr;
};

class SmallFlight final : public InlinedFlight {
  public:
    SmallFlight(const Order& order, const schedule::Schedule& schedule)
        : InlinedFlight(order, schedule),
          bytes_(order.call.common.block_bytes),
          mine_(order.call.common.collective == algorithms::Collective::alltoall
                    ? base::index(comm_.rank > 0 ? comm_.rank - 1 : 0) * bytes_
                    : 0) {}

    [[gnu::always_inline]] void run() {
        slot_ = &channel_.open_slot();
        walk(schedule_, *this);
    }

    void copy(Place from, Place to) {
        const std::byte* source = from.area == Area::send
                                      ? base::displaced(send_.base, from.index * send_.stride_bytes)
                                      : blocks::scratch_of(channel_, from.owner) + inlined(from.index);
        std::byte* target = to.area == Area::recv ? base::displaced(recv_.base, to.index * recv_.stride_bytes)
                                                  : slot_->inlined + inlined(to.index);
        if (source != target) blocks::copy_block(target, source, bytes_);
    }
    void wait(std::int32_t peer, Milestone) {
        // The place where the peer leaves our block, or one near it: it is only fetched ahead.
        channel_.wait_arrived(peer, [&] { return Prefetch{channel_.slot_of(peer).inlined + mine_, bytes_}; });
        check_signature(comm_, channel_, peer, signature_);
    }

  private:
    std::uint64_t inlined(std::int32_t index) const { return base::index(index) * bytes_; }

    const std::uint64_t bytes_;
    const std::uint64_t mine_;
};

// What comes in pieces to a rank whose own blocks are in its slot.
class PiecesFlight final : private PipedBlocks {
  public:
    Outcome outcome;

    PiecesFlight(const comm::Comm& comm, channel::Channel& channel, const Buffer& recv, bool personal)
        : channel_(channel),
          recv_(recv),
          index_(personal ? comm.rank : 0),
          pipe_(channel, {.ranks = comm.ranks, .personal = personal}) {}
    void run() { pipe_.run(*this); }

  private:
    blocks::Block owed_to(std::int32_t) override { return {nullptr, 0}; }
    blocks::Block room_for(std::int32_t peer) override {
        const BlockAt& room = recv_.blocks[peer];
        return {base::displaced(recv_.base, room.displacement_bytes), room.bytes};
    }
    blocks::Block shown_by(std::int32_t peer) override {
        if (channel_.slot_of(peer).publish != Publish::piped) return {nullptr, 0};
        const BlockAt& block = blocks::table_of(channel_, peer).send[index_];
        std::byte* base = blocks::piped_base_of(channel_, peer);
        return {base::displaced(base, block.displacement_bytes), block.bytes,
                blocks::piped_layout_of(channel_, peer, index_)};
    }
    void note_truncated() override { outcome.truncated = true; }

    const channel::Channel& channel_;
    const Buffer& recv_;
    const std::int32_t index_;
    Pipe pipe_;
};

// The same for blocks with sizes of their own: a table of StagedBlock opens the slot's bytes. Readers copy as
// slots come in; that some rank refuses is found on the way, and does no harm: what was received so far MPI
// receives again.
// Peers' blocks that come in pieces are received after the walk, and only then this rank is done.
class SmallSizedFlight final : public InlinedFlight {
  public:
    SmallSizedFlight(const Order& order, const schedule::Schedule& schedule)
        : InlinedFlight(order, schedule), personal_(send_.blocks.size() > 1) {}

    [[gnu::always_inline]] void run() {
        fill_slot();
        walk(schedule_, *this);
        if (sees_pieces_) receive_pieces();
    }

    void raise(Milestone milestone) {
        if (milestone != schedule::kDone || !sees_pieces_) InlinedFlight::raise(milestone);
    }
    void copy(Place place, Place target) {
        if (target.area == Area::scratch) return;  // all at once, in fill_slot()
        COCO_CHECK_DEAR(target.index >= 0 && base::index(target.index) < recv_.blocks.size(),
                        "a block is received from a rank");
        const BlockAt& to = recv_.blocks[target.index];
        std::uint64_t bytes = 0;
        const std::byte* source = place.area == Area::send ? own(bytes) : from(place.owner, bytes);
        outcome.truncated |= bytes > to.bytes;
        blocks::copy_block(base::displaced(recv_.base, to.displacement_bytes), source,
                           std::min(bytes, to.bytes));
    }
    void wait(std::int32_t peer, Milestone) {
        std::uint64_t table_bytes = send_.blocks.size() * sizeof(StagedBlock);
        channel_.wait_arrived(peer, [&] {
            return Prefetch{channel_.slot_of(peer).inlined, table_bytes + recv_.blocks[peer].bytes};
        });
        check_signature(comm_, channel_, peer, signature_);
        outcome.size_class = std::max<int>(outcome.size_class, channel_.slot_of(peer).size_class);
    }

  private:
    void fill_slot() {
        slot_ = &channel_.open_slot();
        slot_->writer = 0;
        outcome.size_class = blocks::largest_class(send_.blocks);
        slot_->size_class = static_cast<std::uint8_t>(outcome.size_class) & 0x7f;
        slot_->reads_mates = channel_.can_read_mates() ? 1 : 0;
        blocks::copy_out(slot_->inlined, send_.base, send_.blocks, {&comm_.rank, 1});
    }

    const std::byte* own(std::uint64_t& bytes) const {
        const BlockAt& block = send_.blocks[personal_ ? comm_.rank : 0];
        bytes = block.bytes;
        return base::displaced(send_.base, block.displacement_bytes);
    }

    // Where `peer` has our block, in whatever way it has published.
    const std::byte* from(std::int32_t peer, std::uint64_t& bytes) {
        const channel::Slot& slot = channel_.slot_of(peer);
        std::int32_t index = personal_ ? comm_.rank : 0;
        if (slot.publish == Publish::refuse) {
            outcome.reason = stats::Reason::peer;
            return nullptr;
        }
        if (slot.publish == Publish::piped) {
            sees_pieces_ = true;
            bytes = 0;
            return nullptr;
        }
        if (slot.publish == Publish::direct) {
            const BlockAt& block =
                reinterpret_cast<const BlockAt*>(channel_.at(peer, slot.direct.send_table))[index];
            bytes = block.bytes;
            return base::displaced(channel_.at(peer, slot.direct.send.at), block.displacement_bytes);
        }
        const std::byte* scratch = blocks::scratch_of(channel_, peer);
        const auto& block = reinterpret_cast<const StagedBlock*>(scratch)[index];
        bytes = block.bytes;
        return scratch + block.offset_bytes;
    }

    [[gnu::noinline, gnu::cold]] void receive_pieces() {
        if (outcome.reason != stats::Reason::none) return channel_.raise(schedule::kDone);
        outcome.truncated |= fly<PiecesFlight>(comm_, channel_, recv_, personal_).truncated;  // raises kDone
    }

    const bool personal_;
    bool sees_pieces_ = false;
};

}  // namespace

Outcome run_small_sized(const Order& order, const schedule::Schedule& schedule) {
    COCO_CHECK_DEAR(order.algorithm.is_eager() && !order.call.common.in_place,
                    "a small exchange is eager, and not in place");
    COCO_CHECK_DEAR(order.call.local.send.packer == nullptr && order.call.local.recv.packer == nullptr,
                    "a small exchange has dense buffers");
    return fly<SmallSizedFlight>(order, schedule);
}

Outcome run_small(const Order& order, const schedule::Schedule& schedule) {
    COCO_CHECK_DEAR(order.algorithm.is_eager(), "a small exchange is eager");
    COCO_CHECK_DEAR(order.call.local.send.packer == nullptr && order.call.local.recv.packer == nullptr,
                    "a small exchange has dense buffers");
    COCO_CHECK_DEAR(
        base::index(schedule.scratch_blocks) * order.call.common.block_bytes <= channel::kInlineBytes,
        "the scratch of a small exchange fits into a slot");
    return fly<SmallFlight>(order, schedule);
}

}  // namespace coco::exec
