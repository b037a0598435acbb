// SPDX-License-Identifier: BSD-3-Clause
//
// What is in force in this process: settings and policy, read once, before MPI_Init or at the first
// collective seen; whether MPI runs, and whether libcoco does. Called by the rest of dispatch. Thread safety:
// any thread. Fails: a wrong setting ends the job with one line.
#pragma once
#include <cstdint>

#include "choose/journal.h"
#include "policy/policy.h"
#include "settings/settings.h"

namespace coco::dispatch {

// Whether nothing of ours runs: COCO_DISABLE=1, or ranks with unequal settings. COCO_STATS still counts.
bool is_switched_off();
// Switches off for good, as ranks have unequal settings.
void switch_off();
// Whether MPI may be called.
bool mpi_runs();
// Makes ready for calls. Returns: false while MPI is not initialised, or when it is finalised.
bool wake();
// Reads the settings, if nobody has. Called before MPI starts, too.
void read_settings();
// Requires (all): read_settings() was called.
settings::Settings& settings_in_force();
inline const policy::Policy& the_policy() { return settings_in_force().policy; }
inline const settings::Learn& learning_in_force() { return settings_in_force().learn; }
// By which ranks compare their policies, and builds of libcoco: two in one job do not understand each other's
// memory.
std::uint64_t choice_hash();
choose::Journal& the_journal();

// A session was opened: MPI runs, whatever MPI_Initialized says of the world.
void note_session();
bool has_session();
// MPI_Finalize was called: what we own of MPI is gone, though a tool below may go on for a while.
void note_end();

}  // namespace coco::dispatch
