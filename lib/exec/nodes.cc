// SPDX-License-Identifier: BSD-3-Clause
//
// Plain exchanges over several nodes: alltoall and allgather by messages between ranks, and scratch that the
// ranks of a node share. Nobody refuses, as no rank has to touch another's buffers: a rank whose send buffer
// lies on the shared heap shows it to its mates in place of blocks that it would leave for them in scratch,
// where these are many. What may be missing is room for scratch, and on that all ranks agree when a schedule
// first meets a larger block.
#include <algorithm>

#include "base/check.h"
#include "base/index.h"
#include "comm/look_up.h"
#include "exec/exchange_flight.h"
#include "messages/scratch.h"

namespace coco::exec {
namespace {

using blocks::Buffer;
using blocks::Side;
using blocks::Which;
using schedule::Area;
using schedule::Milestone;
using schedule::Place;

// A rank that sends to nobody, or hears from nobody, may have any buffer on that side: it is not looked at.
Call without_idle_buffers(const comm::Comm& comm, Call call) {
    if (!is_neighbor(call.common.collective)) return call;
    if (comm.neighbors->sends_nothing) call.local.send = {};
    if (comm.neighbors->receives_nothing) call.local.recv = {};
    return call;
}

class NodesFlight final : public ExchangeFlight {
  public:
    static constexpr bool kRows = false;

    NodesFlight(const Order& order, const schedule::Schedule& schedule)
        : ExchangeFlight(order),
          schedule_(schedule),
          local_(without_idle_buffers(order.comm, order.call).local),
          bytes_(common().block_bytes) {
        bool personal = base::is_personal(common().collective);
        send_ = ready(local_.send, common().in_place && personal, Which::send);
        recv_ = ready(local_.recv, false, Which::recv);
        fill_side(send_, local_.send, bytes_);
        row(Area::send, comm_.rank).base = send_.base;
        row(Area::recv, comm_.rank).base = recv_.base;
        outcome.staged = is_staged();
        shows_send_ = send_.where == blocks::Where::user &&
                      base::index(schedule_.left_blocks) * bytes_ > kCopyOutBytes &&
                      blocks::is_shared(local_.send, bytes_);
        if (!is_neighbor(common().collective)) return;
        // Blocks that no neighbour sends must stay as they are.
        fill_side(recv_, local_.recv, bytes_);
        signature_ ^= kBundled;
    }

    void run() {
        row(Area::scratch, comm_.rank).base = messages::take_scratch(channel_, lane_.post);
        walk(schedule_, *this);
        if (shows_send_)
            for (const std::int32_t mate : comm_.mates) channel_.wait_milestone(mate, schedule::kDone);
        blocks::empty_side(recv_, local_.recv, bytes_);
    }

    void copy(Place source, Place target) { copy_run(source, target, 1); }
    // Copies blocks that lie behind one another in both places.
    void copy_run(Place source, Place target, std::int32_t blocks) {
        if (shows_send_ && target.owner == comm_.rank && is_left(target)) {
            const std::int32_t shown = std::min(schedule_.left_blocks - target.index, blocks);
            blocks -= shown;
            source.index += shown;
            target.index += shown;
        }
        COCO_CHECK_DEAR(!is_left(source) || source.index + blocks <= schedule_.left_blocks,
                        "blocks that are left are taken alone");
        const std::byte* from = address(source);
        std::byte* to = address(target);
        if (from != to) blocks::copy_block(to, from, base::index(blocks) * bytes_);
    }

    void wait(std::int32_t peer, Milestone milestone) {
        wait_for_scratch(peer, milestone);
        if (milestone == schedule::kArrived) row(Area::send, peer).base = blocks::left_of(channel_, peer);
    }
    void raise(Milestone milestone) {
        raise_with_scratch(milestone,
                           shows_send_ ? address({comm_.rank, Area::send, schedule_.left_first}) : nullptr);
    }

    void send(std::int32_t to, Place first, std::int32_t blocks) {
        lane_.post.wire->send_marked(to, address(first), base::index(blocks) * bytes_, mark());
    }
    void receive(std::int32_t from, Place first, std::int32_t blocks) {
        lane_.post.wire->receive_marked(from, address(first), base::index(blocks) * bytes_, mark());
    }
    void complete(std::int32_t left) {
        const std::int32_t unlike = lane_.post.complete(channel_, base::index(left));
        if (unlike != mpi::Wire::kNobody) stop_unequal(comm_, unlike);
    }

  private:
    // Makes the side ready, its blocks behind one another without gaps.
    Side ready(const Buffer& buffer, bool over_own, Which which) {
        bool gaps = buffer.block_count > 1 && buffer.stride_bytes != static_cast<std::int64_t>(bytes_);
        Side side = plan_side(store_, buffer,
                              {.exposed = false,
                               .must_copy = over_own || gaps,
                               .if_private = stats::Reason::none,
                               .block_bytes = bytes_,
                               .bytes = base::index(buffer.block_count) * bytes_},
                              which);
        lay_out(side, buffer, side.base, bytes_, store_.blocks_of(which));
        return side;
    }

    // Whether a place in scratch has a block that its owner leaves for a mate.
    bool is_left(Place place) const {
        return place.area == Area::scratch && place.index < schedule_.left_blocks;
    }
    std::byte* address(Place place) {
        COCO_CHECK_DEAR(place.index >= 0, "a block has a number");
        if (place.owner != comm_.rank && is_left(place)) place.area = Area::send;
        return row(place.area, place.owner).base + place.index * static_cast<std::int64_t>(bytes_);
    }

    // The mark of a message: those of ranks in unlike calls differ.
    int mark() const { return static_cast<int>(signature_ % mpi::Wire::kMarks); }

    const schedule::Schedule& schedule_;
    const LocalFacts local_;
    const std::uint64_t bytes_;
    bool shows_send_ = false;  // mates read the send buffer
};

comm::ScheduleKey key_of(const Order& order, const algorithms::Parameters& parameters) {
    const algorithms::Collective collective = order.call.common.collective;
    comm::ScheduleKey key{&order.algorithm, base::exchange_of(collective), order.call.common.root, 1,
                          parameters};
    if (!is_neighbor(collective)) return key;
    key.neighborhood = &order.comm.neighbors->graph_of(collective);
    key.share = &comm::make_share(order.comm, collective, order.algorithm.cut, {});
    key.bundles = &comm::make_bundles(order.comm, collective, parameters.leaders);
    return key;
}

// The parameters that fit the call: where no node has more ranks than may lead, all ranks lead.
algorithms::Parameters fitting(const Order& order) {
    algorithms::Parameters parameters = order.parameters;
    if (order.algorithm.needs_bundles() && parameters.leaders >= order.comm.map.ranks_per_node())
        parameters.leaders = 0;
    return parameters;
}

}  // namespace

Outcome run_over_nodes(const Order& order) {
    COCO_CHECK_DEAR(order.lane.post.wire != nullptr, "an exchange over nodes has a wire");
    const CommonFacts& common = order.call.common;
    if (common.sized && !is_neighbor(common.collective)) return run_sized_over_nodes(order);
    comm::Schedules::Kept& kept = order.comm.kept_schedule(key_of(order, fitting(order)));
    if (common.sized) return run_sized_bundles(order, kept);
    if (!messages::agree_on_scratch(
            order.comm.handle, order.lane.channel, order.lane.post, kept.fits_on(order.lane.number).plain,
            {kept.schedule->scratch_blocks, common.block_bytes, !order.comm.mates.empty()}))
        return run_nothing(order, stats::Reason::no_shared_heap);
    return fly<NodesFlight>(order, *kept.schedule);
}

}  // namespace coco::exec
