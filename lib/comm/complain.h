// SPDX-License-Identifier: BSD-3-Clause
//
// One line per job, at level warn, when nothing of ours can run because the ranks of the node cannot map each
// other's memory: what could not be done, and what helps. Called when a communicator is set up, by all its
// ranks. Thread safety: any thread. Fails: no.
#pragma once
#include "comm/comm.h"

namespace coco::comm {

// speaker: the rank that says it, the same on all ranks: one that could not map all of its mates. Silent
// where one of the ranks has heard of it before, and where COCO_HEAP_LIMIT is 0.
// has_control: whether this rank got a control block.
void complain_unmapped(const Comm& comm, std::int32_t speaker, bool has_control) noexcept;

}  // namespace coco::comm
