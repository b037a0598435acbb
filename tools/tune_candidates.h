// SPDX-License-Identifier: BSD-3-Clause
//
// What may be chosen for a collective on a communicator: the MPI library's own function, every algorithm of
// the registry that runs there, with the parameters that are worth trying, and what the rules choose now.
// Called by tune_session.cc. Pure functions; never fail.
#pragma once
#include <vector>

#include "policy/policy.h"

namespace coco::tools {

// facts: of the communicator, with collective and block. Returns: no choice twice, the MPI library's function
// first.
std::vector<policy::Choice> candidates_for(const policy::Facts& facts, const policy::Policy& policy);

}  // namespace coco::tools
