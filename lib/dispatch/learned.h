// SPDX-License-Identifier: BSD-3-Clause
//
// How jobs pass on what they have learned (settings/learned_file.h): rank 0 reads the rules of the jobs
// before and tells them to all, and writes those of this job. Called by lifecycle.cc when MPI starts and
// ends. Thread safety: none. Fails: a file that cannot be used costs a line, and what was learned.
#pragma once
#include "choose/journal.h"
#include "settings/settings.h"

namespace coco::dispatch {

// Puts the rules that earlier jobs have learned before those of the policy. Called by all ranks of the world
// together, which have equal settings. may_have_chosen: calls of sessions may have chosen by the policy on
// this rank already; then no rank gets the rules, since choices remember their rule by its number, and other
// threads may be reading the policy.
void fetch_learned_rules(settings::Settings& settings, bool may_have_chosen);
// Leaves what this job has learned to the next ones. Called on rank 0 of the world.
void leave_learned_rules(const settings::Settings& settings, const choose::Journal& journal);

}  // namespace coco::dispatch
