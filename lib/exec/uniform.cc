// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges whose blocks all have one size that every rank knows: alltoall and allgather.
#include "exec/copy_block.h"
#include "exec/exchange.h"
#include "exec/walk.h"
#include "os/probe.h"

namespace coco::exec {
namespace {

using channel::Publish;
using channel::Slot;
using schedule::Area;
using schedule::Milestone;

class UniformView : public ExchangeView {
  public:
    UniformView(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                const schedule::Schedule& schedule)
        : ExchangeView(comm, call.common, algorithm),
          call_(call),
          bytes_(call.common.block_bytes),
          scratch_bytes_(static_cast<std::uint64_t>(schedule.scratch_blocks) * bytes_) {
        std::uint64_t moved =
            static_cast<std::uint64_t>(comm.ranks) * static_cast<std::uint64_t>(comm.ranks) * bytes_;
        streaming_ = outgrows_caches(2 * moved);
    }

    // Returns: the reason of a rank that refuses, on all ranks.
    stats::Reason prepare() {
        comm_.rows.resize(static_cast<std::size_t>(schedule::kAreas) * static_cast<std::size_t>(comm_.ranks));
        plan();
        place();
        if (!may_refuse()) return stats::Reason::none;
        raise(schedule::kArrived);
        return agree(comm_, signature_, refusal());
    }

    static constexpr bool kRows = true;
    using ExchangeView::row;
    void copy(std::byte* target, const std::byte* source) {
        if (source == target) return;
        if (streaming_) [[unlikely]]
            copy_streaming(target, source, bytes_);
        else
            copy_block(target, source, bytes_);
    }

    void wait(std::int32_t peer, Milestone milestone) {
        if (milestone == schedule::kArrived) {
            channel_.wait_arrived(peer);
            arrived(peer);
        } else if (milestone != schedule::kDone || must_wait_done(send_)) {
            channel_.wait_milestone(peer, milestone);
        }
    }

    void raise(Milestone milestone) {
        if (milestone == schedule::kArrived)
            publish(*slot_);
        else
            channel_.raise(milestone);
    }

    void finish() { empty_side(recv_, call_.local.recv, bytes_); }
    bool staged() const { return send_.where != Where::user || recv_.where != Where::user; }

  private:
    // Only calls above what may be staged can be refused, and all ranks know which those are.
    bool may_refuse() const {
        return static_cast<std::uint64_t>(comm_.ranks) * bytes_ > kSideLimitBytes &&
               (algorithm_.reads_peer_send() || algorithm_.writes_peer_recv());
    }
    stats::Reason refusal() const {
        return send_.refusal != stats::Reason::none ? send_.refusal : recv_.refusal;
    }

    void plan() {
        const Buffer& send = call_.local.send;
        const Buffer& recv = call_.local.recv;
        // In place, a personal exchange writes over blocks that others still have to read; scratch is a copy
        // already.
        bool over_own =
            common_.in_place && algorithm_.reads_peer_send() && base::is_personal(common_.collective);
        send_ = plan_side(comm_, send,
                          {.exposed = algorithm_.reads_peer_send(),
                           .must_copy = over_own,
                           .if_private = stats::Reason::send_private,
                           .block_bytes = bytes_,
                           .bytes = static_cast<std::uint64_t>(send.block_count) * bytes_},
                          0);
        recv_ = plan_side(comm_, recv,
                          {.exposed = algorithm_.writes_peer_recv(),
                           .must_copy = false,
                           .if_private = stats::Reason::recv_private,
                           .block_bytes = bytes_,
                           .bytes = static_cast<std::uint64_t>(recv.block_count) * bytes_},
                          1);
    }

    void place() {
        slot_ = &open_slot();
        std::uint64_t send_bytes = ring_bytes(send_, call_.local.send);
        std::uint64_t recv_bytes = ring_bytes(recv_, call_.local.recv);
        std::uint64_t stage_bytes = send_bytes + recv_bytes + scratch_bytes_;
        std::byte* stage = stage_bytes != 0 ? channel_.stage_bytes(stage_bytes) : nullptr;
        std::byte* send_at = send_.where == Where::ring ? stage : send_.base;
        std::byte* recv_at = recv_.where == Where::ring ? stage + send_bytes : recv_.base;
        lay_out(send_, call_.local.send, send_at, bytes_, comm_.send_blocks);
        lay_out(recv_, call_.local.recv, recv_at, bytes_, comm_.recv_blocks);
        if (refusal() == stats::Reason::none) fill_side(send_, call_.local.send, bytes_);
        row(Area::send, comm_.rank) = {send_.base, send_.stride_bytes};
        row(Area::recv, comm_.rank) = {recv_.base, recv_.stride_bytes};
        std::byte* scratch = stage + send_bytes + recv_bytes;
        row(Area::scratch, comm_.rank) = {scratch, static_cast<std::int64_t>(bytes_)};
        fill_slot(scratch);
    }

    std::uint64_t ring_bytes(const Side& side, const Buffer& buffer) const {
        return side.where == Where::ring ? line_up(static_cast<std::uint64_t>(buffer.block_count) * bytes_)
                                         : 0;
    }

    void fill_slot(const std::byte* scratch) {
        if (refusal() != stats::Reason::none) {
            slot_->publish = Publish::refuse;
        } else if (scratch_bytes_ != 0) {
            slot_->publish = Publish::staged;
            slot_->scratch_at = channel_.offset_of(scratch);
        } else {
            slot_->publish = Publish::direct;
            slot_->direct = {.send = area_at(send_),
                             .recv = area_at(recv_),
                             .send_table = 0,
                             .recv_table = 0,
                             .send_bytes = 0,
                             .recv_bytes = 0};
        }
    }
    // Private buffers have no offset; nobody will use it.
    channel::AreaAt area_at(const Side& side) const {
        return {channel_.offset_of(side.base), side.stride_bytes};
    }

    void arrived(std::int32_t peer) {
        check_signature(comm_, peer, signature_);
        const Slot& slot = channel_.slot_of(peer);
        auto stride_bytes = static_cast<std::int64_t>(bytes_);
        if (slot.publish == Publish::staged) {
            row(Area::scratch, peer) = {channel_.at(peer, slot.scratch_at), stride_bytes};
        } else if (slot.publish == Publish::inlined) {
            row(Area::scratch, peer) = {const_cast<std::byte*>(slot.inlined), stride_bytes};
        } else {
            row(Area::send, peer) = {channel_.at(peer, slot.direct.send.at), slot.direct.send.stride_bytes};
            row(Area::recv, peer) = {channel_.at(peer, slot.direct.recv.at), slot.direct.recv.stride_bytes};
        }
    }

    const Call& call_;
    const std::uint64_t bytes_;
    const std::uint64_t scratch_bytes_;
    bool streaming_;
    Side send_, recv_;
    Slot* slot_ = nullptr;
};

}  // namespace

Outcome run_uniform(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm) {
    const schedule::Schedule& schedule =
        comm.schedule_for({&algorithm, base::exchange_of(call.common.collective), 0, 1});
    bool dense = call.local.send.packer == nullptr && call.local.recv.packer == nullptr;
    if (dense && algorithm.is_eager() &&
        static_cast<std::uint64_t>(schedule.scratch_blocks) * call.common.block_bytes <=
            channel::kInlineBytes)
        return run_small(comm, call, schedule);
    UniformView view(comm, call, algorithm, schedule);
    Outcome outcome{.reason = view.prepare(), .staged = view.staged()};
    if (outcome.reason != stats::Reason::none) {
        comm.channel.raise(schedule::kDone);
        return outcome;
    }
    walk(schedule, view);
    view.finish();
    return outcome;
}

}  // namespace coco::exec
