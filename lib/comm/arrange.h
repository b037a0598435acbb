// SPDX-License-Identifier: BSD-3-Clause
//
// The part of setting a communicator up that is the same however its ranks have met: the map of the ranks,
// and how a rank waits there. Called by set_up.cc and bond.cc. Thread safety: that of the communicator.
// Never fails.
#pragma once
#include <cstdint>
#include <vector>

#include "comm/comm.h"
#include "comm/limits.h"
#include "comm/rank_card.h"

namespace coco::comm {

// Fills in the map of the ranks, what follows from it, and whether ranks share CPUs. cards: by rank.
void arrange(Comm& comm, const std::vector<const RankCard*>& cards);
// By whether this rank's host is crowded.
void choose_waiting(Comm& comm);

}  // namespace coco::comm
