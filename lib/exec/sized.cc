// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges whose blocks have sizes of their own: alltoallv, alltoallw, allgatherv. No rank knows another's
// total, so each says in its slot how its blocks can be had, with a table of where they are; the readers
// follow. All slots are read before the first block moves: any rank may refuse. (small.cc has the smallest,
// which find that out on the way.)
#include <algorithm>

#include "base/check.h"
#include "base/index.h"
#include "exec/exchange_flight.h"
#include "exec/pipe.h"
#include "os/cpu.h"

namespace coco::exec {
namespace {

using blocks::Block;
using blocks::BlockAt;
using blocks::Buffer;
using blocks::StagedBlock;
using blocks::Where;
using blocks::Which;
using channel::Publish;
using os::line_up;
using schedule::Area;
using schedule::Milestone;
using schedule::Place;

const schedule::Schedule& schedule_of(comm::Comm& comm, const CommonFacts& common,
                                      const algorithms::Algorithm& algorithm) {
    return comm.exchange_schedule(algorithm, algorithms::Parameters{}.width,
                                  base::exchange_of(common.collective));
}

class SizedFlight final : public ExchangeFlight, private PipedBlocks {
  public:
    explicit SizedFlight(const Order& order)
        : ExchangeFlight(order),
          eager_(!order.algorithm.reads_peer_send()),
          personal_(base::is_personal(order.call.common.collective)),
          send_total_(call_.local.send.total_bytes),
          recv_total_(call_.local.recv.total_bytes) {
        COCO_CHECK_DEAR(call_.local.recv.blocks.size() == base::index(comm_.ranks),
                        "a block comes from each rank");
        COCO_CHECK_DEAR(call_.local.send.blocks.size() == (personal_ ? base::index(comm_.ranks) : 1),
                        "a block goes to each rank, or one to all");
        streaming_ = outgrows_caches((send_total_ + recv_total_) * base::index(comm_.ranks));
        store_.tables.resize(base::index(comm_.ranks));
        plan();
        outcome.staged = is_staged();
    }

    void run() {
        place();
        publish();
        outcome.reason = agree(comm_, channel_, signature_, refusal());
        if (outcome.reason != stats::Reason::none) return channel_.raise(schedule::kDone);
        meet_all();
        if (must_pipe_) {
            run_pipe();
        } else {
            if (slot_->writer != 0 && !mixed_) look_for_truncation();
            walk(schedule_of(comm_, common(), mixed_ ? plain_pull(common().collective) : algorithm_), *this);
            wait_for_readers();
        }
        blocks::empty_side(recv_, call_.local.recv, 0);
    }

    static constexpr bool kRows = false;
    void copy(Place source, Place target) {
        if (target.area == Area::scratch) return;  // filled in place()
        Block from = block(source), to = block(target);
        if (target.owner == comm_.rank) outcome.truncated |= from.bytes > to.bytes;
        std::uint64_t bytes = std::min(from.bytes, to.bytes);
        if (from.at == to.at || bytes == 0) return;
        if (streaming_) [[unlikely]]
            blocks::copy_streaming(to.at, from.at, bytes);
        else
            blocks::copy_block(to.at, from.at, bytes);
    }

    void wait(std::int32_t peer, Milestone milestone) {
        if (milestone == schedule::kArrived) return;  // all have: the agreement waited for them
        if (milestone != schedule::kDone || must_wait_done(send_)) channel_.wait_milestone(peer, milestone);
    }
    void raise(Milestone milestone) {
        if (milestone != schedule::kArrived) channel_.raise(milestone);
    }

  private:
    void plan() {
        const Buffer& send = call_.local.send;
        bool over_own = common().in_place && personal_;
        // Eager or not, what is not copied to scratch is read in place.
        copies_out_ = eager_ && copy_out_bytes() <= blocks::kSideLimitBytes &&
                      !goes_by_layout(call_.local.recv) && !goes_by_layout(send) &&
                      (send_total_ <= eager_bytes(channel_) || send.packer != nullptr || over_own ||
                       !blocks::is_shared(send, 0));
        bool exposed = !copies_out_;
        send_ = plan_side(store_, send,
                          {.exposed = exposed,
                           .must_copy = over_own && exposed,
                           .if_private = stats::Reason::send_private,
                           .block_bytes = 0,
                           .bytes = send_total_,
                           .piped_above_bytes = piped_above_bytes()},
                          Which::send);
        recv_ = plan_recv(algorithm_.writes_peer_recv() && send_.where != Where::pipe);
        is_piped_ = send_.where == Where::pipe || recv_.where == Where::pipe;
        // Where peers cannot write to this rank it reads, and so do they all.
        if (recv_.refusal == stats::Reason::recv_private)
            recv_ = plan_recv(false);
        else if (algorithm_.writes_peer_recv())
            writer_ = algorithm_.mark();
    }

    std::uint64_t piped_above_bytes() const {
        const bool can_pipe = base::index(comm_.ranks) <= channel::kNodeRanks;
        return can_pipe ? blocks::piped_above_bytes(comm_.ranks) : 0;
    }
    // Whether blocks with holes are copied from or to where they lie, which only a pipe can do.
    bool goes_by_layout(const Buffer& buffer) const {
        return buffer.has_layouts() && piped_above_bytes() != 0 && buffer.total_bytes > piped_above_bytes();
    }

    blocks::Side plan_recv(bool exposed) {
        return plan_side(store_, call_.local.recv,
                         {.exposed = exposed,
                          .must_copy = false,
                          .if_private = stats::Reason::recv_private,
                          .block_bytes = 0,
                          .bytes = recv_total_,
                          .piped_above_bytes = goes_by_layout(call_.local.recv) ? piped_above_bytes() : 0},
                         Which::recv);
    }

    // Where others write to our buffer, only we can tell that it is too short.
    void look_for_truncation() {
        std::size_t block = personal_ ? base::index(comm_.rank) : 0;
        for (std::size_t r = 0; r < recv_.blocks.size(); ++r)
            outcome.truncated |= store_.tables[r].send[block].bytes > recv_.blocks[r].bytes;
    }

    std::uint64_t table_bytes() const { return call_.local.send.blocks.size() * sizeof(StagedBlock); }
    std::uint64_t copy_out_bytes() const { return table_bytes() + send_total_; }

    // One piece of the ring for all that this rank publishes: tables, then copies.
    void place() {
        bool inlined = copies_out_ && copy_out_bytes() <= channel::kInlineBytes;
        auto ranks = base::index(comm_.ranks);
        std::uint64_t table = copies_out_ ? 0 : line_up(ranks * sizeof(BlockAt));
        std::uint64_t scratch = copies_out_ && !inlined ? line_up(copy_out_bytes()) : 0;
        std::uint64_t send_bytes = send_.where == Where::ring ? line_up(send_total_) : 0;
        std::uint64_t recv_bytes = recv_.where == Where::ring ? line_up(recv_total_) : 0;
        std::uint64_t pipe_bytes = Pipe::ring_bytes(send_);
        std::uint64_t layouts_bytes = Pipe::layouts_bytes(send_, call_.local.send);
        std::uint64_t all = 2 * table + scratch + send_bytes + recv_bytes + pipe_bytes + layouts_bytes;
        open_slot();
        std::byte* stage = all != 0 ? channel_.stage_bytes(all) : nullptr;
        slot_->writer = writer_;
        outcome.size_class = blocks::largest_class(call_.local.send.blocks);
        slot_->size_class = static_cast<std::uint8_t>(outcome.size_class) & 0x7f;
        slot_->reads_mates = channel_.can_read_mates() ? 1 : 0;
        std::byte* copies = stage + 2 * table + scratch;
        lay_out(send_, call_.local.send, send_.where == Where::ring ? copies : send_.base, 0,
                store_.send_blocks);
        lay_out(recv_, call_.local.recv, recv_.where == Where::ring ? copies + send_bytes : recv_.base, 0,
                store_.recv_blocks);
        if (refusal() != stats::Reason::none) {
            slot_->publish = Publish::refuse;
            return;
        }
        fill_side(send_, call_.local.send, 0);
        // Bytes that are not received must stay as they are, should a peer send less than there is room for.
        fill_side(recv_, call_.local.recv, 0);
        row(Area::send, comm_.rank).base = send_.base;
        row(Area::recv, comm_.rank).base = recv_.base;
        store_.tables[comm_.rank] = {nullptr, send_.blocks.data(), recv_.blocks.data()};
        std::byte* pipe = copies + send_bytes + recv_bytes;
        if (pipe_bytes != 0) ring_ = pipe;
        if (copies_out_)
            publish_copy(inlined ? slot_->inlined : stage);
        else
            publish_tables(stage, stage + table, layouts_bytes != 0 ? pipe + pipe_bytes : nullptr);
    }

    void publish_copy(std::byte* scratch) {
        blocks::copy_out(scratch, send_.base, send_.blocks, {&comm_.rank, 1});
        blocks::publish_scratch(channel_, *slot_, scratch);
    }

    void publish_tables(std::byte* send_table, std::byte* recv_table, std::byte* layouts) {
        std::ranges::copy(send_.blocks, reinterpret_cast<BlockAt*>(send_table));
        if (is_piped_)
            return blocks::publish_piped(channel_, *slot_, send_, call_.local.send,
                                         {ring_, layouts, send_table});
        std::ranges::copy(recv_.blocks, reinterpret_cast<BlockAt*>(recv_table));
        blocks::publish_sides(channel_, *slot_, send_, recv_, send_table, recv_table);
    }

    // Ranks that tell different sizes (of allgatherv; the program is wrong) may have chosen unlike. Those
    // that pull can do so from any peer, so that writers have to pull too.
    void meet_all() {
        must_pipe_ = is_piped_;
        mixed_ = algorithm_.writes_peer_recv() && writer_ == 0;
        for (std::int32_t r : comm_.mates) {
            arrived(r);
            must_pipe_ |= channel_.slot_of(r).publish == Publish::piped;
        }
    }

    void run_pipe() {
        outcome.ran = &plain_pull(common().collective);
        Pipe(channel_, {.ranks = comm_.ranks,
                        .personal = personal_,
                        .in_place = common().in_place,
                        .streaming = streaming_,
                        .piped = send_.piped,
                        .ring = ring_})
            .run(*this);
    }

    void arrived(std::int32_t peer) {
        const channel::Slot& slot = channel_.slot_of(peer);
        mixed_ |= slot.writer != slot_->writer;
        outcome.size_class = std::max<int>(outcome.size_class, slot.size_class);
        store_.tables[peer] = blocks::table_of(channel_, peer);
        if (slot.publish == Publish::direct) {
            row(Area::send, peer).base = channel_.at(peer, slot.direct.send.at);
            row(Area::recv, peer).base = channel_.at(peer, slot.direct.recv.at);
        } else if (slot.publish == Publish::piped) {
            row(Area::send, peer).base = blocks::piped_base_of(channel_, peer);
        } else {
            row(Area::scratch, peer).base = blocks::scratch_of(channel_, peer);
        }
    }

    Block owed_to(std::int32_t peer) override {
        const std::int32_t index = personal_ ? peer : 0;
        Block owed = block({comm_.rank, Area::send, index});
        if (send_.where == Where::pipe) owed.layout = call_.local.send.layout_of_block(index);
        return owed;
    }
    Block room_for(std::int32_t peer) override {
        Block room = block({comm_.rank, Area::recv, peer});
        if (recv_.where == Where::pipe) room.layout = call_.local.recv.layout_of_block(peer);
        return room;
    }
    Block shown_by(std::int32_t peer) override {
        const std::int32_t index = personal_ ? comm_.rank : 0;
        Block shown = block({peer, Area::send, index});
        shown.layout = blocks::piped_layout_of(channel_, peer, index);
        return shown;
    }
    void note_truncated() override { outcome.truncated = true; }

    Block block(Place place) {
        auto [owner, area, index] = place;
        COCO_CHECK_DEAR(owner >= 0 && owner < comm_.ranks && index >= 0, "a block has an owner and a number");
        const blocks::Table& table = store_.tables[owner];
        // Scratch has no block for its owner; the tables do.
        if (area == Area::scratch && personal_ && index >= owner) ++index;
        if (area != Area::recv && table.staged != nullptr) {
            const StagedBlock& staged = table.staged[index];
            return {row(Area::scratch, owner).base + staged.offset_bytes, staged.bytes};
        }
        // An eager rank that publishes in place: its scratch is its send buffer.
        bool recv = area == Area::recv;
        const BlockAt& at = recv ? table.recv[index] : table.send[index];
        return {base::displaced(row(recv ? Area::recv : Area::send, owner).base, at.displacement_bytes),
                at.bytes};
    }

    // An eager schedule has no waits for readers: its scratch needs none, a buffer read in place does.
    void wait_for_readers() {
        if (!eager_ || copies_out_ || send_.where == Where::ring) return;
        const bool to_all = send_.blocks.size() == 1;
        for (const std::int32_t mate : comm_.mates)
            if (send_.blocks[to_all ? 0 : mate].bytes != 0) channel_.wait_milestone(mate, schedule::kDone);
    }

    const bool eager_, personal_;
    const std::uint64_t send_total_, recv_total_;
    bool streaming_, copies_out_ = false, mixed_ = false, must_pipe_ = false;
    std::uint16_t writer_ = 0;   // the algorithm, if it writes to peers and may write to this rank
    bool is_piped_ = false;      // this rank's blocks, or those that it receives, need a pipe
    std::byte* ring_ = nullptr;  // not null: this rank's blocks go through it
};

// Whether all that this rank owes fits into its slot, and it can copy blocks before it knows that nobody
// refuses.
bool is_small(const Order& order) {
    const Buffer& send = order.call.local.send;
    std::uint64_t own = send.blocks.size() > 1 ? send.blocks[order.comm.rank].bytes : 0;
    std::uint64_t owed = send.total_bytes - own;
    return order.algorithm.is_eager() && !order.call.common.in_place && send.packer == nullptr &&
           order.call.local.recv.packer == nullptr && owed <= kEagerBytes &&
           send.blocks.size() * sizeof(StagedBlock) + owed <= channel::kInlineBytes;
}

}  // namespace

Outcome run_sized(const Order& order) {
    if (is_small(order))
        return run_small_sized(order, schedule_of(order.comm, order.call.common, order.algorithm));
    return fly<SizedFlight>(order);
}

}  // namespace coco::exec
