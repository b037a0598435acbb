// SPDX-License-Identifier: BSD-3-Clause
//
// A run of `coco tune` in an MPI job: goes through the cells within the time that is given, and leaves what
// was found after each of them. Called by tune.cc, by all ranks alike. Thread safety: one thread. Fails: rank
// 0 says why in one line.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "tools/tune_job.h"

namespace coco::tools {

struct TunePlan {
    std::vector<algorithms::Collective> collectives;
    std::uint64_t from_bytes = 8, to_bytes = 1 << 20;  // of a block: powers of two times the first
    double minutes = 5;
    std::string policy_path;
};

// policy: from which tuning begins. Returns: the exit status.
int run_session(const Job& job, const TunePlan& plan, const policy::Policy& policy);

}  // namespace coco::tools
