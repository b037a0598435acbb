// SPDX-License-Identifier: BSD-3-Clause
#include "base/check.h"
#include "base/index.h"
#include "exec/limits.h"
#include "exec/signature.h"
#include "exec/ways.h"
#include "mpi/progress.h"

namespace coco::exec {

namespace {

// The algorithm to run: an exchange that is too large for a stage ring cannot be eager.
const algorithms::Algorithm& fitting(const algorithms::Algorithm& algorithm, const comm::Comm& comm,
                                     const CommonFacts& common) {
    if (common.sized || common.collective == algorithms::Collective::bcast || !algorithm.is_eager())
        return algorithm;
    bool personal = common.collective == algorithms::Collective::alltoall;
    std::uint64_t blocks = personal ? base::index(comm.ranks - 1) : 1;
    return blocks * common.block_bytes <= channel::kStageBytes ? algorithm : plain_pull(common.collective);
}

// Whether all blocks of a plain form of neighbours, on all ranks, are of one size. All ranks say the same:
// where a rank's two sizes are not those of all others, nobody can tell.
bool is_of_one_size(const comm::Comm& comm, const Call& call) {
    const comm::Neighbors& near = *comm.neighbors;
    if (!near.sizes_agree) return false;
    return near.sends_nothing || near.receives_nothing ||
           call.local.send.block_bytes == call.local.recv.block_bytes;
}

Outcome exchange(const Order& order) {
    return order.call.common.sized ? run_sized(order) : run_uniform(order);
}

// Packs nothing.
class Nothing final : public blocks::Packer {
  public:
    void pack(std::int32_t, std::byte*) const override {}
    void unpack(std::int32_t, const std::byte*) const override {}
};

// An exchange of a rank with buffers in memory of a device, which only the MPI library can move. All ranks
// hand it back, and this one takes part with blocks of any bytes until they find out. Not so in place, where
// they would have overwritten blocks that the MPI library needs: there they hand back the calls that follow.
Outcome exchange_on_device(const Order& order) {
    using HandedBack = channel::Channel::HandedBack;
    const CommonFacts& common = order.call.common;
    const bool over_own = common.in_place && base::is_personal(common.collective);
    order.lane.channel.hand_back(over_own ? HandedBack::later : HandedBack::this_and_later);
    if (over_own) return exchange(order);
    static constexpr Nothing nothing;
    Call call = order.call;
    for (blocks::Buffer* side : {&call.local.send, &call.local.recv}) {
        side->packer = &nothing;
        side->layouts = {};
    }
    return exchange({order.comm, order.lane, call, order.algorithm, order.parameters});
}

// Whether some rank has asked to hand the exchange back that this rank has come through.
void heed(channel::Channel& channel, Outcome& outcome) {
    using HandedBack = channel::Channel::HandedBack;
    const HandedBack asked = channel.handed_back();
    if (asked == HandedBack::none) [[likely]]
        return;
    outcome.closes = true;
    if (asked == HandedBack::this_and_later) outcome.reason = stats::Reason::device_memory;
}

Outcome exchange_on_node(const Order& order) {
    const LocalFacts& local = order.call.local;
    const bool on_device = local.send.on_device || local.recv.on_device;
    Outcome outcome = on_device ? exchange_on_device(order) : exchange(order);
    heed(order.lane.channel, outcome);
    return outcome;
}

Outcome run_on(const Order& order) {
    const CommonFacts& common = order.call.common;
    comm::Comm& comm = order.comm;
    COCO_CHECK(order.lane.channel.is_open(), "calls run on communicators that are set up");
    COCO_CHECK_DEAR(serves(order.algorithm, common.collective), "an algorithm runs what it serves");
    COCO_CHECK_DEAR(common.root >= 0 && common.root < comm.ranks, "a root is one of the ranks");
    COCO_CHECK_DEAR(common.sized == base::is_sized(common.collective),
                    "blocks have sizes of their own in v and w forms");
    order.lane.channel.begin_epoch();
    mpi::set_current(comm.handle);
    if (base::is_neighbor(common.collective)) {
        if (!order.algorithm.needs_bundles()) return run_neighbors(order);
        if (common.sized || is_of_one_size(comm, order.call)) return run_over_nodes(order);
        return run_neighbors({comm, order.lane, order.call, plain_pull(common.collective), order.parameters});
    }
    const bool over_nodes = comm.wire != nullptr;
    if (common.collective == algorithms::Collective::bcast)
        return (over_nodes ? run_bcast_over_nodes : run_bcast)(order);
    if (over_nodes) return run_over_nodes(order);
    return exchange_on_node(
        {comm, order.lane, order.call, fitting(order.algorithm, comm, common), order.parameters});
}

}  // namespace

Outcome run_nothing(const Order& order, stats::Reason reason) {
    order.lane.channel.raise(schedule::kDone);
    return {.reason = reason, .ran = &order.algorithm};
}

Outcome run(comm::Comm& comm, comm::Lane& lane, const Call& call, const algorithms::Algorithm& algorithm,
            const algorithms::Parameters& parameters) noexcept {
    return run_on({comm, lane, call, algorithm, parameters});
}

void refuse_together(comm::Comm& comm, algorithms::Collective collective) {
    constexpr std::uint32_t kNoRoot = 0xF0;  // no exchange has this signature
    channel::Channel& channel = comm.lane.channel;
    COCO_CHECK(channel.is_open(), "ranks refuse on an open channel");
    channel.begin_epoch();
    mpi::set_current(comm.handle);
    channel::Slot& slot = channel.open_slot();
    slot.signature = signature_of({.collective = collective}) ^ kNoRoot;
    slot.publish = channel::Publish::refuse;
    channel.publish(slot);
    static_cast<void>(agree(comm, channel, slot.signature, stats::Reason::bad_arguments));
    channel.raise(schedule::kDone);
}

}  // namespace coco::exec
