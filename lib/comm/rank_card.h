// SPDX-License-Identifier: BSD-3-Clause
//
// What a rank tells the others of itself, in MPI_Init (world.h) or where the ranks of a communicator meet by
// a collective (set_up.h). Thread safety: a pure function but for what the operating system tells. Never
// fails.
#pragma once
#include <cstdint>

#include "comm/crowding.h"
#include "heap/segment.h"

namespace coco::comm {

// Travels as bytes between equal programs of one job.
struct RankCard {
    heap::SegmentId segment;
    std::uint64_t choice_hash;
    // Equal on ranks of one node, and on those of a node that are in one domain: the real ones, or those of a
    // machine that COCO_TOPOLOGY invents.
    std::uint64_t node_label, domain_label;
    FoldedCpus cpus;
    std::int32_t job_crowds_node;  // 0 or 1
};
// This rank's card, as number `rank` of `ranks` by which an invented machine is dealt.
RankCard make_rank_card(std::uint64_t choice_hash, std::int32_t rank, std::int32_t ranks);

}  // namespace coco::comm
