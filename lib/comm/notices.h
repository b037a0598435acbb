// SPDX-License-Identifier: BSD-3-Clause
//
// Notices, by which each rank of a communicator on one node tells all others, at set-up, through its stage
// ring, as many words as fit. They take an epoch of the communicator's. Called by look_up.cc. Thread
// safety: that of the communicator. Fails: ranks that are in another call then end the job with one line.
#pragma once
#include <cstdint>
#include <vector>

#include "comm/comm.h"

namespace coco::comm {

using Notice = std::vector<std::int32_t>;

// Returns: by rank, what each one told; nothing, on all ranks, if some rank had too much to tell. Requires:
// the communicator is open and on one node; all its ranks call it in the same call.
std::vector<Notice> exchange_notices(Comm& comm, const Notice& mine);

}  // namespace coco::comm
