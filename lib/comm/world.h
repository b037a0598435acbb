// SPDX-License-Identifier: BSD-3-Clause
//
// The ranks of MPI_COMM_WORLD, as all of them know one another since MPI_Init: where each one is and how its
// memory is found. By this knowledge the ranks of a communicator within the world meet without asking the MPI
// library again (comm/meeting.h). Programs without MPI_COMM_WORLD (sessions alone) and very large worlds go
// without it.
//
// Thread safety: acquaint() before any other thread calls MPI; the rest by any thread. Fails: acquaint()
// never; a mate that cannot be mapped later, against what was found out, ends the job with one line.
#pragma once
#include <cstdint>
#include <span>

#include "channel/directory.h"
#include "comm/rank_card.h"
#include "heap/segment.h"

namespace coco::comm {

// The card that a rank shows to all others.
struct WorldRank {
    RankCard card;
    std::uint64_t directory_at;  // offset in the segment; 0: none
    std::int32_t counts;         // 0 or 1: whether the rank counts its calls (COCO_STATS)
};

// Makes the ranks of the world known to one another. Called by all ranks in MPI_Init, whether switched off or
// not. takes_part: whether anything of ours may run on this rank. Returns: whether all ranks have equal
// choice hashes.
bool acquaint(std::uint64_t choice_hash, bool takes_part);
// All ranks by their number in the world; none if they are not known. Fixed once acquaint() has returned.
std::span<const WorldRank> world();
// Whether ranks of a node may meet through their directories: equal on all ranks of the world.
bool can_meet();
bool world_is_one_node();
// Whether any rank counts its calls.
bool anybody_counts();
std::int32_t rank_in_world();

// The segment of a rank of this rank's node in this process. Requires (all three): can_meet().
std::byte* segment_of(std::int32_t world_rank);
channel::Directory& directory_of(std::int32_t world_rank);
channel::Directory& own_directory();

}  // namespace coco::comm
