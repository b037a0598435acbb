// SPDX-License-Identifier: BSD-3-Clause
//
// Plain exchanges over several nodes: alltoall and allgather by messages between ranks, and scratch that the
// ranks of a node share. No rank touches another's buffers, so nobody refuses; what may be missing is room
// for scratch, and on that all ranks agree when a schedule first meets a larger block.
#include <algorithm>

#include "comm/neighbors.h"
#include "exec/copy_block.h"
#include "exec/exchange.h"
#include "exec/scratch.h"
#include "exec/walk.h"

namespace coco::exec {
namespace {

using channel::Publish;
using schedule::Area;
using schedule::Milestone;
using schedule::Place;

class NodesView : public ExchangeView {
  public:
    static constexpr bool kRows = false;

    NodesView(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm)
        : ExchangeView(comm, call.common, algorithm), call_(call), bytes_(call.common.block_bytes) {
        if (!is_neighbor(common_.collective)) return;
        signature_ ^= kBundled;
        tag_ = mpi::Wire::kBundleTag;
    }

    // Requires: has_scratch().
    void prepare() {
        comm_.rows.resize(static_cast<std::size_t>(schedule::kAreas) * static_cast<std::size_t>(comm_.ranks));
        bool personal = base::is_personal(common_.collective);
        send_ = ready(call_.local.send, common_.in_place && personal, 0, comm_.send_blocks);
        recv_ = ready(call_.local.recv, false, 1, comm_.recv_blocks);
        fill_side(send_, call_.local.send, bytes_);
        // What no neighbour sends must stay as it is.
        if (is_neighbor(common_.collective)) fill_side(recv_, call_.local.recv, bytes_);
        set_row(Area::send, comm_.rank, send_.base);
        set_row(Area::recv, comm_.rank, recv_.base);
        set_row(Area::scratch, comm_.rank, take_scratch(comm_));
    }

    void copy(Place source, Place target) { copy_run(source, target, 1); }
    // Blocks behind one another in both places.
    void copy_run(Place source, Place target, std::int32_t blocks) {
        const std::byte* from = address(source);
        std::byte* to = address(target);
        if (from != to) copy_block(to, from, static_cast<std::uint64_t>(blocks) * bytes_);
    }

    void wait(std::int32_t peer, Milestone milestone) {
        if (milestone != schedule::kArrived) return void(channel_.wait_milestone(peer, milestone));
        channel_.wait_arrived(peer);
        check_signature(comm_, peer, signature_);
        set_row(Area::scratch, peer, channel_.at(peer, channel_.slot_of(peer).scratch_at));
    }

    void raise(Milestone milestone) {
        if (milestone != schedule::kArrived) return channel_.raise(milestone);
        channel::Slot& slot = open_slot();
        slot.publish = Publish::staged;
        slot.scratch_at = channel_.offset_of(row(Area::scratch, comm_.rank).base);
        publish(slot);
    }

    void send(std::int32_t to, Place first, std::int32_t blocks) {
        comm_.wire->send(to, address(first), static_cast<std::uint64_t>(blocks) * bytes_, tag_);
    }
    void receive(std::int32_t from, Place first, std::int32_t blocks) {
        comm_.wire->receive(from, address(first), static_cast<std::uint64_t>(blocks) * bytes_, tag_);
    }
    void complete(std::int32_t left) { comm_.complete(static_cast<std::size_t>(left)); }

    void finish() { empty_side(recv_, call_.local.recv, bytes_); }
    bool staged() const { return send_.where != Where::user || recv_.where != Where::user; }

  private:
    // The side, its blocks behind one another without gaps.
    Side ready(const Buffer& buffer, bool over_own, int room, std::vector<channel::BlockAt>& blocks) {
        bool gaps = buffer.block_count > 1 && buffer.stride_bytes != static_cast<std::int64_t>(bytes_);
        Side side = plan_side(comm_, buffer,
                              {.exposed = false,
                               .must_copy = over_own || gaps,
                               .if_private = stats::Reason::none,
                               .block_bytes = bytes_,
                               .bytes = static_cast<std::uint64_t>(buffer.block_count) * bytes_},
                              room);
        lay_out(side, buffer, side.base, bytes_, blocks);
        return side;
    }

    void set_row(Area area, std::int32_t owner, std::byte* base) {
        row(area, owner) = {base, static_cast<std::int64_t>(bytes_)};
    }
    std::byte* address(Place place) {
        return row(place.area, place.owner).base + place.index * static_cast<std::int64_t>(bytes_);
    }

    const Call& call_;
    const std::uint64_t bytes_;
    int tag_ = mpi::Wire::kFirstTag;
    Side send_, recv_;
};

comm::ScheduleKey key_of(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                         const algorithms::Parameters& parameters) {
    const algorithms::Collective collective = call.common.collective;
    comm::ScheduleKey key{&algorithm, base::exchange_of(collective), call.common.root, 1, parameters};
    if (!is_neighbor(collective)) return key;
    key.neighborhood = &comm.neighbors->graph_of(collective);
    key.share = &comm::share_of(comm, collective, algorithm.cut, {});
    key.bundles = &comm::bundles_of(comm, collective, leading_of(parameters));
    return key;
}

// Bundles of large blocks go straight to their nodes: in plain forms all are of one size (run.cc). And where
// no node has more ranks than may lead, all do.
algorithms::Parameters fitting(const comm::Comm& comm, const CommonFacts& common,
                               const algorithms::Algorithm& algorithm, algorithms::Parameters parameters) {
    if (!algorithm.needs_bundles()) return parameters;
    if (!common.sized && common.block_bytes > kCombinedBytes) parameters.threshold = 0;
    if (parameters.leaders >= comm.ranks_per_node) parameters.leaders = 0;
    return shortest(algorithm, parameters);
}

// A rank that sends to nobody, or hears from nobody, may have any buffer there.
Call without_idle_buffers(const comm::Comm& comm, Call call) {
    if (!is_neighbor(call.common.collective)) return call;
    if (comm.neighbors->sends_nothing) call.local.send = {};
    if (comm.neighbors->receives_nothing) call.local.recv = {};
    return call;
}

}  // namespace

Outcome run_over_nodes(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                       const algorithms::Parameters& parameters) {
    const bool neighbor = is_neighbor(call.common.collective);
    if (call.common.sized && !neighbor) return run_sized_over_nodes(comm, call, algorithm, parameters);
    comm::Comm::Kept& kept =
        comm.kept_for(key_of(comm, call, algorithm, fitting(comm, call.common, algorithm, parameters)));
    if (call.common.sized) return run_sized_bundles(comm, call, algorithm, kept);
    if (!has_scratch(comm, kept.plain_fit, kept.schedule->scratch_blocks, call.common.block_bytes)) {
        comm.channel.raise(schedule::kDone);
        return {.reason = stats::Reason::no_shared_heap};
    }
    const Call used = without_idle_buffers(comm, call);
    NodesView view(comm, used, algorithm);
    view.prepare();
    walk(*kept.schedule, view);
    view.finish();
    return {.staged = view.staged(), .ran = &algorithm};
}

}  // namespace coco::exec
