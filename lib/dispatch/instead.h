// SPDX-License-Identifier: BSD-3-Clause
//
// Puts another choice in the place of the policy's, for one collective on one communicator: so that
// algorithms can be compared with one another, and with what is learned, in one process; and tells by which
// facts rules would choose for it. Called by the door (interpose/api.cc). Thread safety: that of the
// communicator's collectives. Fails: returns false, and changes nothing.
#pragma once
#include <string_view>

#include "mpi/handles.h"
#include "policy/policy.h"

namespace coco::dispatch {

// collective: as policies name it. choice: as policies write it; "rules": what the rules choose, without
// learning; empty: all is as it was. Returns: whether it was done: words must be known, and the communicator
// set up. Requires: all ranks of the communicator do so between the same two collectives.
bool choose_instead(mpi::Comm comm, std::string_view collective, std::string_view choice);
// Fills in the facts that are the communicator's: nodes, ranks of a node, domains, whether they are crowded
// and, once its neighbours are known, the degree. Returns: whether it is set up.
bool facts_of(mpi::Comm comm, policy::Facts& facts);
// Makes the process forget what it has learned, so that communicators which are set up later begin with
// nothing. Requires: all ranks of theirs do so.
void forget_what_was_learned();

}  // namespace coco::dispatch
