// SPDX-License-Identifier: BSD-3-Clause
//
// Bcast. The root alone publishes: how long its buffer is and how it can be had. The others follow the slot, not
// their own arguments, so that a private buffer at the root or a longer one at a receiver changes no rank's path.
// A buffer in many segments goes in trains of at most kTrain, each an epoch of its own.
#include <algorithm>

#include "exec/copy_block.h"
#include "exec/exchange.h"
#include "exec/walk.h"
#include "heap/segment.h"
#include "os/probe.h"

namespace coco::exec {
namespace {

using comm::Publish;
using comm::Slot;
using schedule::Area;
using schedule::Milestone;
using schedule::Step;

constexpr std::uint64_t kTrain = 64;
constexpr std::uint64_t kRingSegments = 4;
constexpr std::uint64_t kSegmentBytesMax = comm::kStageBytes / kRingSegments / 64 * 64;
// Staged in one piece up to here, so that the root can run some calls ahead.
constexpr std::uint64_t kStagedBytesMax = comm::kStageBytes / 8;

// The registry's row that moves a buffer published in this way.
const algorithms::Algorithm& row_for(Publish publish) {
    for (const algorithms::Algorithm& a : algorithms::registry())
        if (serves(a, algorithms::Collective::bcast) && a.one_node &&
            a.reads_peer_send == (publish == Publish::direct) && a.segmented == (publish == Publish::segmented))
            return a;
    __builtin_trap();
}

// How this call's buffer is published; the root's decision.
struct Way {
    Publish publish = Publish::direct;
    std::uint64_t bytes = 0;
    std::uint64_t segment_bytes = 0;
};

std::uint64_t segment_bytes_for(std::uint64_t wanted_bytes) {
    // Half of the L2 cache holds what is being filled and what is being read.
    std::uint64_t bytes = wanted_bytes != 0 ? wanted_bytes : os::caches().l2_bytes / 16;
    return std::clamp<std::uint64_t>(base::round_up(bytes, 64), 1024, kSegmentBytesMax);
}

Way choose_way(const Call& call, const std::byte* buffer, const algorithms::Algorithm& algorithm,
               std::uint64_t wanted_segment_bytes) {
    Way way{.bytes = call.local.bytes};
    bool in_place = algorithm.reads_peer_send && heap::is_shared(buffer, way.bytes);
    if (in_place) return way;
    if (algorithm.segmented || way.bytes > kStagedBytesMax)
        way = {Publish::segmented, way.bytes, segment_bytes_for(wanted_segment_bytes)};
    else
        way.publish = way.bytes <= comm::kBcastInlineBytes ? Publish::inlined : Publish::staged;
    return way;
}

std::uint64_t bytes_per_epoch(const Way& way) {
    return way.publish == Publish::segmented ? kTrain * way.segment_bytes : std::max<std::uint64_t>(way.bytes, 1);
}

// One epoch: [base, base + bytes) of this rank's buffer.
class BcastView {
  public:
    BcastView(comm::Comm& comm, std::int32_t root, const Way& way, std::byte* base, std::uint64_t bytes)
        : comm_(comm), root_(root), way_(way), base_(base), bytes_(bytes) {
        unit_bytes_ = way.publish == Publish::segmented ? way.segment_bytes : bytes;
        streaming_ = outgrows_caches(2 * bytes);
    }

    std::int32_t segments() const {
        return unit_bytes_ == 0 ? 1 : static_cast<std::int32_t>((bytes_ + unit_bytes_ - 1) / unit_bytes_);
    }

    // The root's slot, before the schedule is walked: its raise of kArrived publishes it.
    void open(std::uint64_t signature, std::uint64_t total_bytes) {
        slot_ = &comm_.open_slot();
        slot_->signature = static_cast<std::uint32_t>(signature);
        slot_->publish = way_.publish;
        slot_->bcast.bytes = total_bytes;
        
        source_ = base_;
        if (way_.publish == Publish::inlined) {
            scratch_ = slot_->bcast.inlined;
            return;
        }
        if (way_.publish != Publish::direct) scratch_ = comm_.stage_bytes(scratch_bytes());
        slot_->bcast.there = {comm_.offset_of(way_.publish == Publish::direct ? base_ : scratch_), way_.segment_bytes};
    }

    // What the root has published. Requires: its slot was waited for.
    void follow(const Slot& slot) {
        std::byte* at = way_.publish == Publish::inlined ? const_cast<std::byte*>(slot.bcast.inlined)
                                                         : comm_.at(root_, slot.bcast.there.at);
        source_ = scratch_ = at;
    }

    // The buffer has room for no more than this.
    void limit(std::uint64_t room_bytes) { room_bytes_ = room_bytes; }

    void copy(const Step& step) {
        // The segment's number stands where it is not scratch.
        std::int32_t segment = step.source_area == Area::scratch ? step.target_index : step.source_index;
        std::uint64_t at = static_cast<std::uint64_t>(segment) * unit_bytes_;
        std::uint64_t end = std::min(bytes_, room_bytes_);
        if (at >= end) return;
        std::uint64_t bytes = std::min(unit_bytes_, end - at);
        const std::byte* source = step.source_area == Area::scratch
                                      ? scratch_ + static_cast<std::uint64_t>(step.source_index) * unit_bytes_
                                      : source_ + at;
        std::byte* target = step.target_area == Area::scratch
                                ? scratch_ + static_cast<std::uint64_t>(step.target_index) * unit_bytes_
                                : base_ + at;
        if (streaming_ && step.target_area != Area::scratch) [[unlikely]]
            copy_streaming(target, source, bytes);
        else
            copy_block(target, source, bytes);
    }

    void wait(std::int32_t peer, Milestone milestone) {
        if (peer == root_ && milestone == schedule::kArrived)
            comm_.wait_arrived(peer);
        else
            comm_.wait_milestone(peer, milestone);
    }

    void raise(Milestone milestone) {
        if (slot_ != nullptr && milestone == schedule::kArrived)
            comm_.publish(*slot_);
        else
            comm_.raise(milestone);
    }

  private:
    // The schedule may wait for the root's later segments by its flag: both are raised in order.
    std::uint64_t scratch_bytes() const {
        std::uint64_t ring = std::min<std::uint64_t>(static_cast<std::uint64_t>(segments()), kRingSegments);
        return way_.publish == Publish::segmented ? ring * unit_bytes_ : bytes_;
    }

    comm::Comm& comm_;
    const std::int32_t root_;
    const Way& way_;
    std::byte* base_;
    const std::uint64_t bytes_;
    std::uint64_t unit_bytes_;
    std::uint64_t room_bytes_ = UINT64_MAX;
    bool streaming_;
    Slot* slot_ = nullptr;
    const std::byte* source_ = nullptr;
    std::byte* scratch_ = nullptr;
};

void walk_epoch(comm::Comm& comm, BcastView& view, Publish publish, std::int32_t root) {
    walk(comm.schedule_for({&row_for(publish), algorithms::Exchange::bcast, root, view.segments()}), view);
}

void send_all(comm::Comm& comm, const Call& call, std::byte* buffer, const Way& way) {
    std::uint32_t signature = signature_of(call.common);
    std::uint64_t step = bytes_per_epoch(way);
    for (std::uint64_t at = 0; at < way.bytes; at += step) {
        if (at != 0) ++comm.epoch;
        BcastView view(comm, comm.rank, way, buffer + at, std::min(step, way.bytes - at));
        view.open(signature, way.bytes);
        walk_epoch(comm, view, way.publish, comm.rank);
    }
}

// Returns: whether the root sent more than fits here; what fits is received.
bool receive_all(comm::Comm& comm, const Call& call, std::byte* buffer) {
    const std::int32_t root = call.common.root;
    std::uint64_t total = 1, step = 1;
    for (std::uint64_t at = 0; at < total; at += step) {
        if (at != 0) ++comm.epoch;
        comm.wait_arrived(root);
        check_signature(comm, root, signature_of(call.common));
        const Slot& slot = comm.slot_of(root);
        Way way{slot.publish, slot.bcast.bytes, slot.publish == Publish::segmented ? slot.bcast.there.segment_bytes : 0};
        total = way.bytes;
        step = bytes_per_epoch(way);
        std::uint64_t here = std::min(step, total - at);
        std::uint64_t room = call.local.bytes > at ? call.local.bytes - at : 0;
        BcastView view(comm, root, way, buffer + at, here);
        view.follow(slot);
        view.limit(room);
        walk_epoch(comm, view, way.publish, root);
    }
    return total > call.local.bytes;
}

}  // namespace

Outcome run_bcast(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                  std::uint64_t segment_bytes) {
    bool root = comm.rank == call.common.root;
    const Buffer& user = root ? call.local.send : call.local.recv;
    Demand demand{.exposed = false, .must_copy = false, .if_private = stats::Reason::none, .bytes = call.local.bytes};
    Side side = plan_side(comm, user, demand, root ? 0 : 1);
    if (side.where != Where::user) {
        // Packed for direct reading if there is shared room; other roots' buffers go through segments.
        if (root)
            if (std::byte* shared = fetch_room(comm, 0, call.local.bytes)) side.base = shared;
        lay_out(side, user, side.base, call.local.bytes, comm.send_blocks);
    }
    Outcome outcome{.staged = side.where != Where::user};
    if (root) {
        fill_side(side, user, call.local.bytes);
        send_all(comm, call, side.base, choose_way(call, side.base, algorithm, segment_bytes));
    } else {
        outcome.truncated = receive_all(comm, call, side.base);
        empty_side(side, user, call.local.bytes);
    }
    return outcome;
}

}  // namespace coco::exec
