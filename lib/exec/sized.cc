// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges whose blocks have sizes of their own: alltoallv, alltoallw, allgatherv. No rank knows another's
// total, so each says in its slot how its blocks can be had, with a table of where they are; the readers
// follow. All slots are read before the first block moves: any rank may refuse. (small.cc has the smallest,
// which find that out on the way.)
#include <algorithm>

#include "exec/copy_block.h"
#include "exec/exchange.h"
#include "exec/walk.h"
#include "os/probe.h"

namespace coco::exec {
namespace {

using channel::BlockAt;
using channel::Publish;
using channel::Slot;
using channel::StagedBlock;
using schedule::Area;
using schedule::Milestone;
using schedule::Place;

class SizedView : public ExchangeView {
  public:
    SizedView(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm)
        : ExchangeView(comm, call.common, algorithm),
          call_(call),
          eager_(!algorithm.reads_peer_send()),
          personal_(base::is_personal(call.common.collective)),
          send_total_(call.local.send.total_bytes),
          recv_total_(call.local.recv.total_bytes) {
        streaming_ = outgrows_caches((send_total_ + recv_total_) * static_cast<std::uint64_t>(comm.ranks));
    }

    stats::Reason prepare() {
        auto ranks = static_cast<std::size_t>(comm_.ranks);
        comm_.rows.resize(schedule::kAreas * ranks);
        comm_.tables.resize(ranks);
        plan();
        place();
        publish(*slot_);
        stats::Reason reason = agree(comm_, signature_, refusal());
        if (reason != stats::Reason::none) return reason;
        for (std::int32_t r : comm_.mates) arrived(r);
        if (slot_->writer != 0 && !mixed_) look_for_truncation();
        return reason;
    }

    // Ranks that tell different sizes (of allgatherv; the program is wrong) may have chosen unlike. Who pulls
    // can do so from any peer, so that writers have to pull too.
    bool mixed() const { return mixed_; }

    static constexpr bool kRows = false;
    void copy(Place source, Place target) {
        if (target.area == Area::scratch) return;  // filled in place()
        Spot from = spot(source), to = spot(target);
        if (target.owner == comm_.rank) truncated_ |= from.bytes > to.bytes;
        std::uint64_t bytes = std::min(from.bytes, to.bytes);
        if (from.at == to.at || bytes == 0) return;
        if (streaming_) [[unlikely]]
            copy_streaming(to.at, from.at, bytes);
        else
            copy_block(to.at, from.at, bytes);
    }

    void wait(std::int32_t peer, Milestone milestone) {
        if (milestone == schedule::kArrived) return;  // all have: agree() waited for them
        if (milestone != schedule::kDone || must_wait_done(send_)) channel_.wait_milestone(peer, milestone);
    }
    void raise(Milestone milestone) {
        if (milestone != schedule::kArrived) channel_.raise(milestone);
    }

    void finish() {
        wait_for_readers();
        empty_side(recv_, call_.local.recv, 0);
    }
    bool staged() const { return send_.where != Where::user || recv_.where != Where::user; }
    bool truncated() const { return truncated_; }

  private:
    stats::Reason refusal() const {
        return send_.refusal != stats::Reason::none ? send_.refusal : recv_.refusal;
    }

    void plan() {
        const Buffer& send = call_.local.send;
        bool over_own = common_.in_place && personal_;
        // Eager or not, what is not copied to scratch is read in place.
        copies_out_ =
            eager_ && copy_out_bytes() <= kSideLimitBytes &&
            (send_total_ <= eager_bytes(comm_) || send.packer != nullptr || over_own || !is_shared(send, 0));
        bool exposed = !copies_out_;
        send_ = plan_side(comm_, send,
                          {.exposed = exposed,
                           .must_copy = over_own && exposed,
                           .if_private = stats::Reason::send_private,
                           .block_bytes = 0,
                           .bytes = send_total_},
                          0);
        recv_ = plan_side(comm_, call_.local.recv,
                          {.exposed = algorithm_.writes_peer_recv(),
                           .must_copy = false,
                           .if_private = stats::Reason::recv_private,
                           .block_bytes = 0,
                           .bytes = recv_total_},
                          1);
    }

    std::uint16_t writer() const {
        if (!algorithm_.writes_peer_recv()) return 0;
        return algorithm_.mark();
    }

    // Where others write to our buffer, only we can tell that it is too short.
    void look_for_truncation() {
        std::size_t block = personal_ ? static_cast<std::size_t>(comm_.rank) : 0;
        for (std::size_t r = 0; r < recv_.blocks.size(); ++r)
            truncated_ |= comm_.tables[r].send[block].bytes > recv_.blocks[r].bytes;
    }

    std::uint64_t table_bytes() const { return call_.local.send.blocks.size() * sizeof(StagedBlock); }
    std::uint64_t copy_out_bytes() const { return table_bytes() + send_total_; }

    // One piece of the ring for all that this rank publishes: tables, then copies.
    void place() {
        slot_ = &open_slot();
        slot_->writer = writer();
        bool inlined = copies_out_ && copy_out_bytes() <= channel::kInlineBytes;
        auto ranks = static_cast<std::uint64_t>(comm_.ranks);
        std::uint64_t table = copies_out_ ? 0 : line_up(ranks * sizeof(BlockAt));
        std::uint64_t scratch = copies_out_ && !inlined ? line_up(copy_out_bytes()) : 0;
        std::uint64_t send_bytes = send_.where == Where::ring ? line_up(send_total_) : 0;
        std::uint64_t recv_bytes = recv_.where == Where::ring ? line_up(recv_total_) : 0;
        std::uint64_t all = 2 * table + scratch + send_bytes + recv_bytes;
        std::byte* stage = all != 0 ? channel_.stage_bytes(all) : nullptr;
        std::byte* copies = stage + 2 * table + scratch;
        lay_out(send_, call_.local.send, send_.where == Where::ring ? copies : send_.base, 0,
                comm_.send_blocks);
        lay_out(recv_, call_.local.recv, recv_.where == Where::ring ? copies + send_bytes : recv_.base, 0,
                comm_.recv_blocks);
        if (refusal() != stats::Reason::none) {
            slot_->publish = Publish::refuse;
            return;
        }
        fill_side(send_, call_.local.send, 0);
        // What is not received must stay as it is, should a peer send less than there is room for.
        fill_side(recv_, call_.local.recv, 0);
        row(Area::send, comm_.rank).base = send_.base;
        row(Area::recv, comm_.rank).base = recv_.base;
        comm_.tables[comm_.rank] = {nullptr, send_.blocks.data(), recv_.blocks.data()};
        if (copies_out_)
            publish_copy(inlined ? slot_->inlined : stage, inlined);
        else
            publish_tables(stage, stage + table);
    }

    void publish_copy(std::byte* scratch, bool inlined) {
        copy_out(scratch, send_.base, send_.blocks, {&comm_.rank, 1});
        slot_->publish = inlined ? Publish::inlined : Publish::staged;
        if (!inlined) slot_->scratch_at = channel_.offset_of(scratch);
    }

    void publish_tables(std::byte* send_table, std::byte* recv_table) {
        std::ranges::copy(send_.blocks, reinterpret_cast<BlockAt*>(send_table));
        std::ranges::copy(recv_.blocks, reinterpret_cast<BlockAt*>(recv_table));
        slot_->publish = Publish::direct;
        slot_->direct = {.send = {channel_.offset_of(send_.base), 0},
                         .recv = {channel_.offset_of(recv_.base), 0},
                         .send_table = channel_.offset_of(send_table),
                         .recv_table = channel_.offset_of(recv_table),
                         .send_bytes = 0,
                         .recv_bytes = 0};
    }

    void arrived(std::int32_t peer) {
        const Slot& slot = channel_.slot_of(peer);
        mixed_ |= slot.writer != slot_->writer;
        if (slot.publish == Publish::direct) {
            row(Area::send, peer).base = channel_.at(peer, slot.direct.send.at);
            row(Area::recv, peer).base = channel_.at(peer, slot.direct.recv.at);
            comm_.tables[peer] = {
                nullptr, reinterpret_cast<const BlockAt*>(channel_.at(peer, slot.direct.send_table)),
                reinterpret_cast<const BlockAt*>(channel_.at(peer, slot.direct.recv_table))};
            return;
        }
        std::byte* scratch = slot.publish == Publish::inlined ? const_cast<std::byte*>(slot.inlined)
                                                              : channel_.at(peer, slot.scratch_at);
        row(Area::scratch, peer).base = scratch;
        comm_.tables[peer] = {reinterpret_cast<const StagedBlock*>(scratch), nullptr, nullptr};
    }

    Spot spot(Place place) {
        auto [owner, area, index] = place;
        const comm::Table& table = comm_.tables[owner];
        // Scratch has no block for its owner; the tables do.
        if (area == Area::scratch && personal_ && index >= owner) ++index;
        if (area != Area::recv && table.staged != nullptr) {
            const StagedBlock& block = table.staged[index];
            return {row(Area::scratch, owner).base + block.offset_bytes, block.bytes};
        }
        // An eager rank that publishes in place: its scratch is its send buffer.
        bool recv = area == Area::recv;
        const BlockAt& block = recv ? table.recv[index] : table.send[index];
        return {base::displaced(row(recv ? Area::recv : Area::send, owner).base, block.displacement_bytes),
                block.bytes};
    }

    // An eager schedule has no waits for readers: its scratch needs none, a buffer read in place does.
    void wait_for_readers() {
        if (!eager_ || copies_out_ || send_.is_guarded()) return;
        bool to_all = send_.blocks.size() == 1;
        for (std::int32_t r = 0; r < comm_.ranks; ++r)
            if (r != comm_.rank && send_.blocks[to_all ? 0 : r].bytes != 0)
                channel_.wait_milestone(r, schedule::kDone);
    }

    const Call& call_;
    const bool eager_, personal_;
    const std::uint64_t send_total_, recv_total_;
    bool streaming_, copies_out_ = false, truncated_ = false, mixed_ = false;
    Side send_, recv_;
    Slot* slot_ = nullptr;
};

// What this rank owes fits into its slot, and it can copy blocks before it knows that nobody refuses.
bool is_small(const Call& call, const algorithms::Algorithm& algorithm, std::int32_t rank) {
    const Buffer& send = call.local.send;
    std::uint64_t own = send.blocks.size() > 1 ? send.blocks[rank].bytes : 0;
    std::uint64_t owed = send.total_bytes - own;
    return algorithm.is_eager() && !call.common.in_place && send.packer == nullptr &&
           call.local.recv.packer == nullptr && owed <= kEagerBytes &&
           send.blocks.size() * sizeof(StagedBlock) + owed <= channel::kInlineBytes;
}

}  // namespace

Outcome run_sized(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm) {
    auto schedule_of = [&](const algorithms::Algorithm& a) -> const schedule::Schedule& {
        return comm.schedule_for({&a, base::exchange_of(call.common.collective), 0, 1});
    };
    if (is_small(call, algorithm, comm.rank)) return run_small_sized(comm, call, schedule_of(algorithm));
    SizedView view(comm, call, algorithm);
    Outcome outcome{.reason = view.prepare(), .staged = view.staged()};
    if (outcome.reason != stats::Reason::none) {
        comm.channel.raise(schedule::kDone);
        return outcome;
    }
    walk(schedule_of(view.mixed() ? plain_pull(call.common.collective) : algorithm), view);
    view.finish();
    outcome.truncated = view.truncated();
    return outcome;
}

}  // namespace coco::exec
