// SPDX-License-Identifier: BSD-3-Clause
//
// Measures one cell in one pass: the candidates' calls in turns, round after round, until the time is used up
// or more samples would change nothing. A sample is a barrier and a batch of calls, or one call with cold
// buffers, and counts as the slowest rank's. Called by tune_session.cc, by all ranks alike; they conclude
// from agreed numbers alone. Thread safety: one thread. Never fails.
#pragma once
#include <cstdint>
#include <vector>

#include "tools/tune_calls.h"
#include "tools/tune_samples.h"

namespace coco::tools {

// A dozen calls of each candidate, or fewer where they would take too long: afterwards buffers are shared,
// schedules made, and guess_ns is what was seen. Those that are hopeless are out. Requires: a pass has begun.
// Returns: how long it took, by rank 0's clock.
std::uint64_t warm_up(const Calls& calls, std::vector<Contender>& contenders, std::uint64_t budget_ns);
// Fills the samples of the contenders that are in. Requires: a pass has begun, and they have guesses.
// budget_ns: equal on all ranks. Returns: whether some rank was asked to end meanwhile.
bool measure(const Calls& calls, std::vector<Contender>& contenders, bool is_cold, std::uint64_t budget_ns);

}  // namespace coco::tools
