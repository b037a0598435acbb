// SPDX-License-Identifier: BSD-3-Clause
//
// What rank 0 of a communicator has learned on earlier ones, told to all its ranks while it is set up, so
// that they go on from there alike. Where ranks meet in their own memory it lies in rank 0's control block;
// where they meet by collectives of the MPI library it comes by one more. Called by meeting.cc and
// discover.cc. Thread safety: that of the communicator. Fails: nothing is known then.
#pragma once
#include <cstdint>
#include <span>

#include "comm/comm.h"

namespace coco::comm {

// Writes what this process's journal knows of communicators like this one. Requires: its nodes are known.
void tell_what_is_known(const Comm& comm, std::span<std::int64_t> room);
// Fills Comm::told. All ranks call it.
void hear_what_is_known(Comm& comm);

}  // namespace coco::comm
