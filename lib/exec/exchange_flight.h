// SPDX-License-Identifier: BSD-3-Clause
//
// The common part of the flights of exchanges: their lane, their slot, where peers' blocks are. Thread
// safety: that of the lane.
#pragma once
#include "base/check.h"
#include "blocks/copy_block.h"
#include "blocks/publish.h"
#include "blocks/side.h"
#include "exec/limits.h"
#include "exec/signature.h"
#include "exec/walk.h"
#include "exec/ways.h"

namespace coco::exec {

class ExchangeFlight {
  public:
    Outcome outcome;  // valid once the call is over

  protected:
    explicit ExchangeFlight(const Order& order)
        : comm_(order.comm),
          lane_(order.lane),
          channel_(order.lane.channel),
          store_(order.lane.blocks),
          call_(order.call),
          algorithm_(order.algorithm),
          signature_(signature_of(order.call.common)) {
        store_.make_rows(comm_.ranks);
        outcome.ran = &algorithm_;
    }

    blocks::Row& row(schedule::Area area, std::int32_t owner) { return store_.row(area, owner, comm_.ranks); }
    const CommonFacts& common() const { return call_.common; }
    // Whether others' last touch of our buffers has to be waited for: not when all they touch is a guarded
    // copy.
    bool must_wait_done(const blocks::Side& send) const {
        return algorithm_.writes_peer_recv() || (algorithm_.reads_peer_send() && !send.is_guarded());
    }
    void open_slot() {
        slot_ = &channel_.open_slot();
        slot_->signature = signature_;
    }
    void publish() {
        if (published_) return;
        COCO_CHECK_DEAR(slot_ != nullptr, "a slot is opened before it is published");
        published_ = true;
        channel_.publish(*slot_);
    }
    // Of exchanges that peers take part in by scratch alone. Waits for a peer; where it arrives, finds its
    // scratch.
    void wait_for_scratch(std::int32_t peer, schedule::Milestone milestone) {
        if (milestone != schedule::kArrived) return channel_.wait_milestone(peer, milestone);
        channel_.wait_arrived(peer);
        check_signature(comm_, channel_, peer, signature_);
        row(schedule::Area::scratch, peer).base = blocks::scratch_of(channel_, peer);
    }
    // The same for this rank: where it arrives, its scratch is published, and, if not null, where else its
    // blocks for mates are.
    void raise_with_scratch(schedule::Milestone milestone, const std::byte* left = nullptr) {
        if (milestone != schedule::kArrived) return channel_.raise(milestone);
        open_slot();
        blocks::publish_scratch(channel_, *slot_, row(schedule::Area::scratch, comm_.rank).base, left);
        publish();
    }
    void complete(std::size_t left) { lane_.post.complete(channel_, left); }
    bool is_staged() const { return !blocks::is_users(send_.where) || !blocks::is_users(recv_.where); }
    stats::Reason refusal() const {
        return send_.refusal != stats::Reason::none ? send_.refusal : recv_.refusal;
    }

    comm::Comm& comm_;
    comm::Lane& lane_;
    channel::Channel& channel_;
    blocks::Store& store_;
    const Call& call_;
    const algorithms::Algorithm& algorithm_;
    std::uint32_t signature_;
    bool published_ = false;
    channel::Slot* slot_ = nullptr;
    blocks::Side send_, recv_;
};

}  // namespace coco::exec
