// SPDX-License-Identifier: BSD-3-Clause
//
// When the rooms wake and sleep: settings and policy are read once, before MPI_Init or at the first
// collective seen.
#pragma once
#include "choose/journal.h"
#include "policy/policy.h"
#include "settings/settings.h"

namespace coco::dispatch {

// Whether nothing of ours runs: COCO_DISABLE=1, or ranks with unequal settings. COCO_STATS still counts.
bool is_switched_off();
// Whether MPI may be called.
bool mpi_runs();
// Makes ready for calls. Returns: false while MPI is not initialised, or when it is finalised.
bool wake();
// Requires: wake() was true once.
const policy::Policy& the_policy();
const settings::Learn& learning_in_force();
choose::Journal& the_journal();

}  // namespace coco::dispatch
