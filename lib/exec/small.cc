// SPDX-License-Identifier: BSD-3-Clause
//
// The smallest plain exchanges: what a rank owes fits into its slot, beside the epoch that announces it, so
// that a reader gets both with the same cache lines. The same eager schedule as ever, walked by the leanest
// view.
#include "exec/copy_block.h"
#include "exec/exchange.h"
#include "exec/walk.h"

namespace coco::exec {
namespace {

using schedule::Area;
using schedule::Milestone;
using schedule::Step;

class SmallView {
  public:
    SmallView(comm::Comm& comm, const Call& call)
        : comm_(comm),
          send_(call.local.send),
          recv_(call.local.recv),
          bytes_(call.common.block_bytes),
          signature_(signature_of(call.common)),
          mine_(call.common.collective == algorithms::Collective::alltoall
                    ? static_cast<std::uint64_t>(comm.rank > 0 ? comm.rank - 1 : 0) * bytes_
                    : 0),
          slot_(comm.open_slot()) {}

    void copy(const Step& step) {
        const std::byte* source = step.source_area == Area::send
                                      ? send_.base + step.source_index * send_.stride_bytes
                                      : scratch_of(step.source_owner) + inlined(step.source_index);
        std::byte* target = step.target_area == Area::recv
                                ? recv_.base + step.target_index * recv_.stride_bytes
                                : slot_.inlined + inlined(step.target_index);
        if (source != target) copy_block(target, source, bytes_);
    }
    void wait(std::int32_t peer, Milestone) {
        // Where the peer leaves our block, or somewhere near it: only to have it fetched.
        comm_.wait_arrived(peer, {comm_.slot_of(peer).inlined + mine_, bytes_});
        check_signature(comm_, peer, signature_);
    }
    void raise(Milestone milestone) {
        if (milestone == schedule::kDone) return comm_.raise(milestone);
        slot_.signature = signature_;
        slot_.publish = comm::Publish::inlined;
        comm_.publish(slot_);
    }

  private:
    // A peer whose buffers are not dense comes by another way: it stages.
    const std::byte* scratch_of(std::int32_t peer) const {
        const comm::Slot& slot = comm_.slot_of(peer);
        return slot.publish == comm::Publish::inlined ? slot.inlined : comm_.at(peer, slot.scratch_at);
    }
    std::uint64_t inlined(std::int32_t index) const { return static_cast<std::uint64_t>(index) * bytes_; }

    comm::Comm& comm_;
    const Buffer& send_;
    const Buffer& recv_;
    const std::uint64_t bytes_;
    const std::uint32_t signature_;
    const std::uint64_t mine_;
    comm::Slot& slot_;
};

}  // namespace

Outcome run_small(comm::Comm& comm, const Call& call, const schedule::Schedule& schedule) {
    SmallView view(comm, call);
    walk(schedule, view);
    return {};
}

}  // namespace coco::exec
