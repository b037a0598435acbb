// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges among neighbours, all five forms: within a node through the shared heap, between nodes by a
// message for each edge.
//
// How a rank's blocks can be had is its own affair: in the slot, on the stage ring, where they lie, or, when
// they are too many and private, by messages; who reads them follows. So nobody refuses, ranks wait for
// nobody but those whose buffers they touch, and ranks that think of different sizes may choose unlike as
// long as the receivers copy. Where others write to receive buffers, all ranks of the node have to be ready
// for that: with few bytes they always are; else all look at all slots, and if one is not, the receivers
// copy.
//
// Between nodes messages may be combined (`combining`). A rank that takes part must know that all who share
// neighbours with it do; it knows their block sizes, as blocks that go to one rank are of one size. So who
// sends blocks of such size that they are better sent straight is alone in that with nobody. In v and w forms
// the lengths travel along (carrier.h).
#include <algorithm>

#include "exec/neighbor_view.h"
#include "exec/walk.h"

namespace coco::exec {

using channel::BlockAt;
using channel::Publish;
using channel::Slot;
using channel::StagedBlock;
using schedule::Area;
using schedule::Edge;

void NeighborView::finish(std::span<const std::int32_t> readers) {
    if (!writes_ && !algorithm_.reads_peer_send() && is_read_in_place())
        for (std::int32_t r : readers) channel_.wait_milestone(r, schedule::kDone);
    if (carrier_) go_straight();
    comm_.complete(near_.requests);
    empty_side(recv_, call_.local.recv, call_.local.recv.block_bytes);
}

std::uint32_t NeighborView::signature(const Buffer& side) const {
    CommonFacts facts{.collective = common_.collective};
    if (!sized_) facts.block_bytes = side.block_bytes;
    return signature_of(facts);
}

void NeighborView::arrived(std::int32_t peer) {
    const Slot& slot = channel_.slot_of(peer);
    if (writes_) {
        // A slot of bundles says nothing of writers: what stands there is of an earlier call.
        constexpr std::uint32_t kKindBits = 0xF | kBundled;
        if (slot.writer != slot_->writer || ((slot.signature ^ signature_) & kKindBits) != 0)
            stop_unequal(comm_, peer);
    } else {
        check_signature(comm_, peer, expected_);
    }
    comm::Row& send = row(Area::send, peer);
    auto block_bytes = static_cast<std::int64_t>(call_.local.recv.block_bytes);
    if (slot.publish == Publish::direct) {
        send = {channel_.at(peer, slot.direct.send.at), slot.direct.send.stride_bytes};
        row(Area::recv, peer) = {channel_.at(peer, slot.direct.recv.at), slot.direct.recv.stride_bytes};
        if (sized_)
            comm_.tables[peer] = {
                nullptr, reinterpret_cast<const BlockAt*>(channel_.at(peer, slot.direct.send_table)),
                reinterpret_cast<const BlockAt*>(channel_.at(peer, slot.direct.recv_table))};
    } else if (slot.publish == Publish::messages) {
        receive_all(peer);
    } else {
        std::byte* scratch = slot.publish == Publish::inlined ? const_cast<std::byte*>(slot.inlined)
                                                              : channel_.at(peer, slot.scratch_at);
        send = {scratch, block_bytes};
        if (sized_) comm_.tables[peer] = {reinterpret_cast<const StagedBlock*>(scratch), nullptr, nullptr};
    }
}

void NeighborView::receive_all(std::int32_t peer) {
    for (const Edge& edge : graph_.incoming_from(peer)) {
        Spot block = own(Area::recv, edge.received);
        wire_.start_receive(peer, block.at, block.bytes, mpi::Wire::kSecondTag, near_.requests);
    }
}

void NeighborView::look_for_truncation() {
    for (const Edge& edge : graph_.incoming) {
        if (comm_.map.node[edge.sender] != comm_.map.node[comm_.rank]) continue;
        const bool to_itself = edge.sender == comm_.rank;
        if (!to_itself) arrived(edge.sender);
        const schedule::Place block{edge.sender, Area::send, personal_ ? edge.sent : 0};
        const Spot sent = to_itself ? own(block) : spot_of(block);
        truncated_ |= sent.bytes > own(Area::recv, edge.received).bytes;
    }
}

namespace {

const schedule::EdgeShare& share_for(comm::Comm& comm, const Call& call, schedule::Cut cut) {
    if (const schedule::EdgeShare* known = comm::find_share(comm, call.common.collective, cut)) return *known;
    std::vector<std::uint64_t> weights;
    constexpr std::uint64_t kLeast = base::kCacheLineBytes;
    if (call.common.sized && cut != schedule::Cut::own)
        for (const BlockAt& block : call.local.recv.blocks) weights.push_back(std::max(block.bytes, kLeast));
    return comm::share_of(comm, call.common.collective, cut, weights);
}

struct Combined {
    const schedule::CombinedSends* sends = nullptr;
    const schedule::CombinedReceives* receives = nullptr;
};

// The pattern is made in the first call whatever the sizes, which ranks may think of unlike.
Combined combined_for(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                      const algorithms::Parameters& parameters) {
    if (!algorithm.combines()) return {};
    const schedule::Combining& all = comm::combining_of(comm, call.common.collective, parameters);
    auto combines = [&](const Buffer& side) {
        return call.common.sized || side.block_bytes <= kCombinedBytes;
    };
    return {combines(call.local.send) ? &all.sends : nullptr,
            combines(call.local.recv) ? &all.receives : nullptr};
}

const schedule::Schedule& schedule_for(comm::Comm& comm, const Call& call,
                                       const algorithms::Algorithm& algorithm, Combined combined) {
    return comm.schedule_for({.algorithm = &algorithm,
                              .exchange = base::exchange_of(call.common.collective),
                              .root = 0,
                              .segments = 1,
                              .parameters = {},
                              .neighborhood = &comm.neighbors->graph_of(call.common.collective),
                              .share = &share_for(comm, call, algorithm.cut),
                              .combined_sends = combined.sends,
                              .combined_receives = combined.receives});
}

}  // namespace

Outcome run_neighbors(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                      const algorithms::Parameters& parameters) {
    const Combined combined = combined_for(comm, call, algorithm, parameters);
    const schedule::Schedule& chosen = schedule_for(comm, call, algorithm, combined);
    const algorithms::Algorithm& pull = plain_pull(call.common.collective);
    NeighborView view(comm, call, algorithm);
    if (combined.sends != nullptr || combined.receives != nullptr)
        view.carry(chosen.scratch_blocks, combined.receives);
    bool as_chosen = view.prepare();
    walk(as_chosen ? chosen : schedule_for(comm, call, pull, {}), view);
    view.finish(share_for(comm, call, schedule::Cut::own).touching);
    return {.staged = view.staged(), .truncated = view.truncated(), .ran = as_chosen ? &algorithm : &pull};
}

}  // namespace coco::exec
