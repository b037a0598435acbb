// SPDX-License-Identifier: BSD-3-Clause
//
// Makes rules of what the communicators of a job have learned, for the jobs after it: one for each kind of
// cell in which another choice than that of the rules has proved faster. Called by dispatch when MPI ends.
// Thread safety: a pure function. Never fails.
#pragma once
#include <span>
#include <vector>

#include "choose/journal.h"
#include "policy/policy.h"

namespace coco::choose {

// old: the learned rules so far, of other jobs too; what the lessons say stands in their place. policy: what
// the job chose by.
std::vector<policy::Rule> rules_learned(std::span<const Lesson> lessons, const policy::Policy& policy,
                                        std::vector<policy::Rule> old);

// Those of the rules that can hold for a communicator of a job that has so many ranks, in their order: not
// those that ask for larger ones. Each rule that all ranks are told takes them time when MPI starts.
std::vector<policy::Rule> rules_for_job(std::vector<policy::Rule> rules, std::uint64_t ranks);

}  // namespace coco::choose
