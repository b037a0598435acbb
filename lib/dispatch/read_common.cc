// SPDX-License-Identifier: BSD-3-Clause
//
// Reads the part of a call's arguments that is common to all ranks.
#include <algorithm>

#include "dispatch/alias.h"
#include "dispatch/read.h"
#include "dispatch/side_args.h"
#include "dispatch/valid.h"
#include "mpi/library.h"

namespace coco::dispatch {
namespace {

using algorithms::Collective;

// Whether a rank would write over what it still has to send. (An allgather's own block may lie where it is
// received: it is copied to itself.)
bool is_overwritten(const Args& args, const CommonArguments& common) {
    auto begin = [](const BufferArgs& side, const TypeFacts& type) {
        return reinterpret_cast<std::intptr_t>(side.buffer) + type.offset_bytes;
    };
    return args.collective == Collective::alltoall && !common.facts.in_place && common.block_bytes != 0 &&
           begin(args.send, common.send_type) == begin(args.recv, common.recv_type);
}

// Ranks without neighbours do not know the block size of those who have some.
bool has_common_block(Collective collective, const comm::Comm& comm) {
    if (is_neighbor(collective)) return !is_sized(collective) && !comm.neighbors->has_rank_without_edges;
    return !is_sized(collective) || collective == Collective::allgatherv;
}

bool receives_nothing(Collective collective, const comm::Comm& comm) {
    return is_neighbor(collective) && comm.neighbors->receives_nothing;
}

// Sets block_bytes, the size by which the policy chooses, in the plain forms of neighbours: the larger of the
// sizes of the two sides, where all ranks then name the same.
void choose_by_both_sides(const Args& args, const comm::Comm& comm, CommonArguments& common) {
    if (!is_neighbor(args.collective) || !comm.neighbors->sizes_agree || comm.neighbors->sends_nothing)
        return;
    const std::uint64_t sent_bytes = bytes_of(send_side(args, comm), 0);
    common.names_two_sizes = comm.neighbors->one_size && sent_bytes != common.block_bytes;
    common.block_bytes = std::max(common.block_bytes, sent_bytes);
}

}  // namespace

CommonArguments read_common(const Args& args, const comm::Comm& comm) {
    CommonArguments common{
        .facts = {.collective = args.collective, .root = args.root, .sized = is_sized(args.collective)},
        .send_type = {},
        .recv_type = {}};
    bool in_place = args.collective != Collective::bcast && args.send.buffer == mpi::lib().constants.in_place;
    common.facts.in_place = in_place && !is_neighbor(args.collective);
    SideArgs recv = recv_side(args, comm);
    common.valid = args.root >= 0 && args.root < comm.ranks &&
                   args.recv.buffer != mpi::lib().constants.in_place && in_place == common.facts.in_place &&
                   counts_are_valid(recv) && buffer_is_valid(recv);
    common.recv_type = recv.one_type;
    if (common.valid && !common.facts.in_place && args.collective != Collective::bcast) {
        SideArgs send = send_side(args, comm);
        common.valid = counts_are_valid(send) && buffer_is_valid(send);
        common.doubtful = common.valid && !amounts_agree(args, send, recv);
        common.send_type = send.one_type;
    }
    if (!common.valid) return common;
    common.has_block = has_common_block(args.collective, comm);
    if (!common.facts.sized) {
        common.block_bytes =
            receives_nothing(args.collective, comm) ? bytes_of(send_side(args, comm), 0) : bytes_of(recv, 0);
        if (args.collective != Collective::bcast) common.facts.block_bytes = common.block_bytes;
        choose_by_both_sides(args, comm, common);
        common.recv_dense = common.recv_type.is_dense(static_cast<std::uint64_t>(args.recv.count));
        if (!common.facts.in_place && args.collective != Collective::bcast) {
            common.send_dense = common.send_type.is_dense(static_cast<std::uint64_t>(args.send.count));
        }
    } else if (common.has_block) {
        for (std::int32_t i = 0; i < comm.ranks; ++i)
            common.block_bytes = std::max(common.block_bytes, bytes_of(recv, i));
    }
    common.valid = !common.doubtful;
    common.refused_alias = !common.facts.in_place && is_refused_alias(args, comm.rank, common.recv_type);
    common.sends_copy = common.refused_alias || is_overwritten(args, common);
    return common;
}

}  // namespace coco::dispatch
