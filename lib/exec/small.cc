// SPDX-License-Identifier: BSD-3-Clause
//
// The smallest plain exchanges: what a rank owes fits into its slot, beside the epoch that announces it, so
// that a reader gets both with the same cache lines. The same eager schedule as ever, walked by the leanest
// view.
#include <algorithm>

#include "exec/copy_block.h"
#include "exec/exchange.h"
#include "exec/walk.h"

namespace coco::exec {
namespace {

using schedule::Area;
using schedule::Milestone;
using schedule::Place;

// What this rank owes is in its slot.
class InlinedView {
  public:
    InlinedView(comm::Comm& comm, const Call& call)
        : comm_(comm),
          channel_(comm.channel),
          send_(call.local.send),
          recv_(call.local.recv),
          signature_(signature_of(call.common)),
          slot_(*comm.channel.open_slot()) {}

    static constexpr bool kRows = false;
    void raise(Milestone milestone) {
        if (milestone == schedule::kDone) return channel_.raise(milestone);
        slot_.signature = signature_;
        slot_.publish = channel::Publish::inlined;
        channel_.publish(slot_);
    }

  protected:
    // In the slot, or staged: so does a peer whose blocks are not dense, or do not fit.
    const std::byte* scratch_of(std::int32_t peer) const {
        const channel::Slot& slot = channel_.slot_of(peer);
        return slot.publish == channel::Publish::inlined ? slot.inlined : channel_.at(peer, slot.scratch_at);
    }

    comm::Comm& comm_;
    channel::Channel& channel_;
    const Buffer& send_;
    const Buffer& recv_;
    const std::uint32_t signature_;
    channel::Slot& slot_;
};

class SmallView : public InlinedView {
  public:
    SmallView(comm::Comm& comm, const Call& call)
        : InlinedView(comm, call),
          bytes_(call.common.block_bytes),
          mine_(call.common.collective == algorithms::Collective::alltoall
                    ? static_cast<std::uint64_t>(comm.rank > 0 ? comm.rank - 1 : 0) * bytes_
                    : 0) {}

    void copy(Place from, Place to) {
        const std::byte* source = from.area == Area::send
                                      ? base::displaced(send_.base, from.index * send_.stride_bytes)
                                      : scratch_of(from.owner) + inlined(from.index);
        std::byte* target = to.area == Area::recv ? base::displaced(recv_.base, to.index * recv_.stride_bytes)
                                                  : slot_.inlined + inlined(to.index);
        if (source != target) copy_block(target, source, bytes_);
    }
    void wait(std::int32_t peer, Milestone) {
        // Where the peer leaves our block, or somewhere near it: only to have it fetched.
        channel_.wait_arrived(peer, [&] {
            return channel::Prefetch{channel_.slot_of(peer).inlined + mine_, bytes_};
        });
        check_signature(comm_, peer, signature_);
    }

  private:
    std::uint64_t inlined(std::int32_t index) const { return static_cast<std::uint64_t>(index) * bytes_; }

    const std::uint64_t bytes_;
    const std::uint64_t mine_;
};

// The same for blocks with sizes of their own: a table of StagedBlock opens the slot's bytes. Readers copy as
// slots come in; that some rank refuses is found on the way, and does no harm: what was received so far MPI
// receives again.
class SmallSizedView : public InlinedView {
  public:
    SmallSizedView(comm::Comm& comm, const Call& call)
        : InlinedView(comm, call), personal_(send_.blocks.size() > 1) {
        slot_.writer = 0;
        copy_out(slot_.inlined, send_.base, send_.blocks, {&comm.rank, 1});
    }

    void copy(Place place, Place target) {
        if (target.area == Area::scratch) return;  // all at once, above
        const channel::BlockAt& to = recv_.blocks[target.index];
        std::uint64_t bytes = 0;
        const std::byte* source = place.area == Area::send ? own(bytes) : from(place.owner, bytes);
        outcome.truncated |= bytes > to.bytes;
        copy_block(base::displaced(recv_.base, to.displacement_bytes), source, std::min(bytes, to.bytes));
    }
    void wait(std::int32_t peer, Milestone) {
        std::uint64_t table_bytes = send_.blocks.size() * sizeof(channel::StagedBlock);
        channel_.wait_arrived(peer, [&] {
            return channel::Prefetch{channel_.slot_of(peer).inlined, table_bytes + recv_.blocks[peer].bytes};
        });
        check_signature(comm_, peer, signature_);
    }

    Outcome outcome;

  private:
    const std::byte* own(std::uint64_t& bytes) const {
        const channel::BlockAt& block = send_.blocks[personal_ ? comm_.rank : 0];
        bytes = block.bytes;
        return base::displaced(send_.base, block.displacement_bytes);
    }

    // Where `peer` has our block, in whatever way it has published.
    const std::byte* from(std::int32_t peer, std::uint64_t& bytes) {
        const channel::Slot& slot = channel_.slot_of(peer);
        std::int32_t index = personal_ ? comm_.rank : 0;
        if (slot.publish == channel::Publish::refuse) {
            outcome.reason = stats::Reason::peer;
            return nullptr;
        }
        if (slot.publish == channel::Publish::direct) {
            const auto& block =
                reinterpret_cast<const channel::BlockAt*>(channel_.at(peer, slot.direct.send_table))[index];
            bytes = block.bytes;
            return base::displaced(channel_.at(peer, slot.direct.send.at), block.displacement_bytes);
        }
        const std::byte* scratch = scratch_of(peer);
        const auto& block = reinterpret_cast<const channel::StagedBlock*>(scratch)[index];
        bytes = block.bytes;
        return scratch + block.offset_bytes;
    }

    const bool personal_;
};

}  // namespace

Outcome run_small_sized(comm::Comm& comm, const Call& call, const schedule::Schedule& schedule) {
    SmallSizedView view(comm, call);
    walk(schedule, view);
    return view.outcome;
}

Outcome run_small(comm::Comm& comm, const Call& call, const schedule::Schedule& schedule) {
    SmallView view(comm, call);
    walk(schedule, view);
    return {};
}

}  // namespace coco::exec
