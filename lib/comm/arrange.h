// SPDX-License-Identifier: BSD-3-Clause
//
// The part of setting a communicator up that is the same however its ranks have met: the map of its ranks and how a
// rank waits there. Called by discover.cc and meeting.cc. Thread safety: that of the communicator. Never fails.
#pragma once
#include <cstdint>
#include <vector>

#include "comm/comm.h"
#include "comm/crowding.h"
#include "comm/limits.h"

namespace coco::comm {

// Fills in the map and what follows from it, from labels by rank.
void fill_map(Comm& comm, const std::vector<std::uint64_t>& node_labels,
              const std::vector<std::uint64_t>& domain_labels);
// host: this rank's.
void note_crowding(Comm& comm, const Crowding& crowding, std::uint64_t host);
// By whether this rank's host is crowded.
void choose_waiting(Comm& comm);

}  // namespace coco::comm
