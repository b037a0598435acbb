// SPDX-License-Identifier: BSD-3-Clause
//
// What rank 0 of a communicator has learned on earlier ones, told to all its ranks while it is set up, so
// that they go on from there alike. Where ranks meet in their own memory it lies in rank 0's control block;
// where they meet by collectives of the MPI library it comes by one more. Called by meeting.cc, set_up.cc
// and dispatch. Thread safety: that of the communicator. Fails: nothing is known then.
#pragma once
#include <cstdint>
#include <span>

#include "comm/comm.h"

namespace coco::comm {

// Writes what this process's journal knows of communicators like this one. Requires: its nodes are known.
void tell_known_choices(const Comm& comm, std::span<std::int64_t> room);
// Fills Comm::told. All ranks call it.
void hear_known_choices(Comm& comm);
// Sets where what is learned is kept: rank 0 of a communicator that is set up tells what is there. Requires:
// called before the first set_up(), on all ranks or none.
void set_journal(choose::Journal& journal);
// What rank 0 told. May wait for it. Requires: the communicator is set up; rank 0 comes to a call that this
// rank has come to.
std::span<const std::int64_t> told_by_first_rank(Comm& comm);

}  // namespace coco::comm
