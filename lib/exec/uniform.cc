// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges whose blocks all have one size that every rank knows: alltoall and allgather.
#include <algorithm>

#include "base/check.h"
#include "base/index.h"
#include "exec/exchange_flight.h"
#include "exec/pipe.h"
#include "os/cpu.h"

namespace coco::exec {
namespace {

using blocks::Block;
using blocks::Buffer;
using blocks::Side;
using blocks::Where;
using blocks::Which;
using channel::Publish;
using channel::Slot;
using schedule::Area;
using schedule::Milestone;

class UniformFlight final : public ExchangeFlight, private PipedBlocks {
  public:
    UniformFlight(const Order& order, const schedule::Schedule& schedule)
        : ExchangeFlight(order),
          schedule_(schedule),
          bytes_(common().block_bytes),
          scratch_bytes_(base::index(schedule.scratch_blocks) * bytes_) {
        const auto ranks = base::index(comm_.ranks);
        streaming_ = outgrows_caches(2 * ranks * ranks * bytes_);
        plan();
        outcome.staged = is_staged();
    }

    void run() {
        place();
        if (may_refuse()) {
            publish();
            outcome.reason = agree(comm_, channel_, signature_, refusal());
            if (outcome.reason != stats::Reason::none) return channel_.raise(schedule::kDone);
        }
        if (may_refuse() && must_pipe())
            run_pipe();
        else
            walk(schedule_, *this);
        blocks::empty_side(recv_, call_.local.recv, bytes_);
    }

    static constexpr bool kRows = true;
    using ExchangeFlight::row;
    void copy(std::byte* target, const std::byte* source) {
        if (source == target) return;
        if (streaming_) [[unlikely]]
            blocks::copy_streaming(target, source, bytes_);
        else
            blocks::copy_block(target, source, bytes_);
    }

    void wait(std::int32_t peer, Milestone milestone) {
        if (milestone == schedule::kArrived) {
            channel_.wait_arrived(peer);
            return arrived(peer);
        }
        if (milestone != schedule::kDone || must_wait_done(send_)) channel_.wait_milestone(peer, milestone);
    }

    void raise(Milestone milestone) {
        if (milestone == schedule::kArrived)
            publish();
        else
            channel_.raise(milestone);
    }

  private:
    // Only calls above what is staged in any case can be refused or piped, and all ranks know which those
    // are.
    bool may_refuse() const {
        return base::index(comm_.ranks) * bytes_ > blocks::piped_above_bytes(comm_.ranks) &&
               (algorithm_.reads_peer_send() || algorithm_.writes_peer_recv());
    }

    void plan() {
        const Buffer& send = call_.local.send;
        // In place, a personal exchange writes over blocks that others still have to read; scratch is a copy
        // already.
        bool over_own =
            common().in_place && algorithm_.reads_peer_send() && base::is_personal(common().collective);
        send_ = plan_side(store_, send,
                          {.exposed = algorithm_.reads_peer_send(),
                           .must_copy = over_own,
                           .if_private = stats::Reason::send_private,
                           .block_bytes = bytes_,
                           .bytes = base::index(send.block_count) * bytes_,
                           .piped_above_bytes = can_pipe() ? blocks::piped_above_bytes(comm_.ranks) : 0},
                          Which::send);
        recv_ = plan_recv(algorithm_.writes_peer_recv() && send_.where != Where::pipe);
        is_piped_ = send_.where == Where::pipe || recv_.where == Where::pipe;
        // Where peers cannot write to this rank it reads, and so do they all.
        if (can_pipe() && recv_.refusal == stats::Reason::recv_private)
            recv_ = plan_recv(false);
        else
            writer_ = algorithm_.writes_peer_recv() ? algorithm_.mark() : std::uint16_t{0};
    }

    Side plan_recv(bool exposed) {
        const Buffer& recv = call_.local.recv;
        return plan_side(store_, recv,
                         {.exposed = exposed,
                          .must_copy = false,
                          .if_private = stats::Reason::recv_private,
                          .block_bytes = bytes_,
                          .bytes = base::index(recv.block_count) * bytes_,
                          .piped_above_bytes =
                              can_pipe() && recv.has_layouts() ? blocks::piped_above_bytes(comm_.ranks) : 0},
                         Which::recv);
    }

    bool can_pipe() const { return may_refuse() && base::index(comm_.ranks) <= channel::kNodeRanks; }

    // Whether some rank cannot let its peers read its buffer, or write to it. All ranks find the same.
    bool must_pipe() const {
        const bool unwritable = algorithm_.writes_peer_recv() && writer_ == 0;
        return is_piped_ || unwritable || std::ranges::any_of(comm_.mates, [&](std::int32_t mate) {
                   const Slot& slot = channel_.slot_of(mate);
                   return slot.publish == Publish::piped || slot.writer != writer_;
               });
    }

    void run_pipe() {
        for (std::int32_t mate : comm_.mates) arrived(mate);
        outcome.ran = &plain_pull(common().collective);
        Pipe(channel_, {.ranks = comm_.ranks,
                        .personal = base::is_personal(common().collective),
                        .in_place = common().in_place,
                        .streaming = streaming_,
                        .piped = send_.piped,
                        .ring = ring_})
            .run(*this);
    }
    Block block_at(const blocks::Row& row, std::int32_t index) const {
        COCO_CHECK_DEAR(index >= 0, "a block has a number");
        return {row.base + index * row.stride_bytes, bytes_};
    }
    Block owed_to(std::int32_t peer) override {
        Block owed = block_at(row(Area::send, comm_.rank), base::is_personal(common().collective) ? peer : 0);
        if (send_.where == Where::pipe) owed.layout = call_.local.send.layout_of_block(0);
        return owed;
    }
    Block room_for(std::int32_t peer) override {
        Block room = block_at(row(Area::recv, comm_.rank), peer);
        if (recv_.where == Where::pipe) room.layout = call_.local.recv.layout_of_block(0);
        return room;
    }
    Block shown_by(std::int32_t peer) override {
        Block shown =
            block_at(row(Area::send, peer), base::is_personal(common().collective) ? comm_.rank : 0);
        shown.layout = blocks::piped_layout_of(channel_, peer, 0);
        return shown;
    }
    void note_truncated() override {}

    void place() {
        std::uint64_t send_bytes = ring_bytes(send_, call_.local.send);
        std::uint64_t recv_bytes = ring_bytes(recv_, call_.local.recv);
        std::uint64_t pipe_bytes = Pipe::ring_bytes(send_);
        std::uint64_t layouts_bytes = Pipe::layouts_bytes(send_, call_.local.send);
        std::uint64_t stage_bytes = send_bytes + recv_bytes + pipe_bytes + layouts_bytes + scratch_bytes_;
        open_slot();
        std::byte* stage = stage_bytes != 0 ? channel_.stage_bytes(stage_bytes) : nullptr;
        std::byte* send_at = send_.where == Where::ring ? stage : send_.base;
        std::byte* recv_at = recv_.where == Where::ring ? stage + send_bytes : recv_.base;
        lay_out(send_, call_.local.send, send_at, bytes_, store_.send_blocks);
        lay_out(recv_, call_.local.recv, recv_at, bytes_, store_.recv_blocks);
        if (refusal() == stats::Reason::none) fill_side(send_, call_.local.send, bytes_);
        row(Area::send, comm_.rank) = {send_.base, send_.stride_bytes};
        row(Area::recv, comm_.rank) = {recv_.base, recv_.stride_bytes};
        std::byte* scratch = stage + send_bytes + recv_bytes;
        if (pipe_bytes != 0) ring_ = scratch;
        row(Area::scratch, comm_.rank) = {scratch, static_cast<std::int64_t>(bytes_)};
        fill_slot(scratch, layouts_bytes != 0 ? scratch + pipe_bytes : nullptr);
    }

    std::uint64_t ring_bytes(const Side& side, const Buffer& buffer) const {
        if (side.where != Where::ring) return 0;
        return os::line_up(base::index(buffer.block_count) * bytes_);
    }

    void fill_slot(const std::byte* scratch, std::byte* layouts) {
        slot_->writer = writer_;
        if (may_refuse()) slot_->reads_mates = channel_.can_read_mates() ? 1 : 0;
        if (refusal() != stats::Reason::none)
            slot_->publish = Publish::refuse;
        else if (is_piped_)
            blocks::publish_piped(channel_, *slot_, send_, call_.local.send, {ring_, layouts});
        else if (scratch_bytes_ != 0)
            blocks::publish_scratch(channel_, *slot_, scratch);
        else
            blocks::publish_sides(channel_, *slot_, send_, recv_);
    }

    void arrived(std::int32_t peer) {
        check_signature(comm_, channel_, peer, signature_);
        const Slot& slot = channel_.slot_of(peer);
        if (slot.publish == Publish::piped) {
            row(Area::send, peer) = {blocks::piped_base_of(channel_, peer), slot.direct.send.stride_bytes};
        } else if (slot.publish != Publish::direct) {
            row(Area::scratch, peer) = {blocks::scratch_of(channel_, peer),
                                        static_cast<std::int64_t>(bytes_)};
        } else {
            row(Area::send, peer) = {channel_.at(peer, slot.direct.send.at), slot.direct.send.stride_bytes};
            row(Area::recv, peer) = {channel_.at(peer, slot.direct.recv.at), slot.direct.recv.stride_bytes};
        }
    }

    const schedule::Schedule& schedule_;
    const std::uint64_t bytes_;
    const std::uint64_t scratch_bytes_;
    bool streaming_;
    std::uint16_t writer_ = 0;   // the algorithm, if it writes to peers and may write to this rank
    bool is_piped_ = false;      // this rank's blocks, or those that it receives, need a pipe
    std::byte* ring_ = nullptr;  // not null: this rank's blocks go through it
};

}  // namespace

Outcome run_uniform(const Order& order) {
    const CommonFacts& common = order.call.common;
    COCO_CHECK_DEAR(!common.sized, "blocks of a uniform exchange have one size");
    const schedule::Schedule& schedule = order.comm.exchange_schedule(order.algorithm, order.parameters.width,
                                                                      base::exchange_of(common.collective));
    bool dense = order.call.local.send.packer == nullptr && order.call.local.recv.packer == nullptr;
    if (dense && order.algorithm.is_eager() &&
        base::index(schedule.scratch_blocks) * common.block_bytes <= channel::kInlineBytes)
        return run_small(order, schedule);
    return fly<UniformFlight>(order, schedule);
}

}  // namespace coco::exec
