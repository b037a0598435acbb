// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/alias.h"

#include "base/bits.h"
#include "blocks/side.h"
#include "heap/heap.h"

namespace coco::dispatch {
namespace {

using algorithms::Collective;

const void* behind(const void* buffer, std::int64_t bytes) {
    return base::displaced(static_cast<const std::byte*>(buffer), bytes);
}

bool is_refused_gatherv(const Args& args, std::int32_t rank, const TypeFacts& type) {
    const std::int64_t at = args.recv.displacements[rank] * static_cast<std::int64_t>(type.size_bytes);
    return args.send.type == args.recv.type && args.send.count != 0 && args.recv.counts[rank] != 0 &&
           args.send.buffer == behind(args.recv.buffer, at);
}

}  // namespace

// Compares as MPICH does: arrays by their addresses, and an own block as if its type had no gaps.
bool is_refused_alias(const Args& args, std::int32_t rank, const TypeFacts& recv_type) {
    if (!mpi::lib().manners.refuses_aliases) return false;
    const BufferArgs &send = args.send, &recv = args.recv;
    switch (args.collective) {
        case Collective::alltoall:
        case Collective::allgather:
            return send.type == recv.type && send.count == recv.count && send.count != 0 &&
                   send.buffer == behind(recv.buffer, alias_bytes(args.collective, args.recv.count, rank,
                                                                  recv_type.size_bytes));
        case Collective::alltoallv:
            return send.buffer == recv.buffer && send.type == recv.type && send.counts.is(recv.counts);
        case Collective::alltoallw:
            return send.buffer == recv.buffer && send.types == recv.types && send.counts.is(recv.counts);
        case Collective::allgatherv:
            return is_refused_gatherv(args, rank, recv_type);
        default:
            return false;
    }
}

SentCopy::SentCopy(blocks::Buffer& send) {
    const std::uint64_t bytes = send.blocks.empty()
                                    ? static_cast<std::uint64_t>(send.block_count) * send.block_bytes
                                    : send.total_bytes;
    memory_ = heap::allocate_aligned(64, bytes);
    if (memory_ == nullptr) heap::stop_undivided(bytes);
    blocks::Side side{.where = blocks::Where::private_room, .blocks = {}};
    blocks::lay_out(side, send, static_cast<std::byte*>(memory_), send.block_bytes, blocks_);
    blocks::fill_side(side, send, send.block_bytes);
    send.base = side.base;
    send.stride_bytes = side.stride_bytes;
    send.blocks = side.blocks;
    send.packer = nullptr;
    send.layouts = {};
    send.gapped = send.on_device = false;
}

SentCopy::~SentCopy() { heap::release(memory_); }

}  // namespace coco::dispatch
