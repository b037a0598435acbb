// SPDX-License-Identifier: BSD-3-Clause
//
// Threads of the model: each has a stack of its own and runs when it is told to, until it pauses. Nothing is
// unwound when a run is given up; what it had of the heap is the arena's (memory.h).
#pragma once
#include <functional>

namespace coco::model {

// Makes `thread` ready to run `body` from its begin.
void start_fiber(int thread, std::function<void()> body);
// Runs it until it pauses or ends. Returns: whether it has ended.
bool run_fiber(int thread);
// Called by the fiber that runs: back to who has called run_fiber().
void pause_fiber();
// The fiber that runs; -1: none does.
int running_fiber();

}  // namespace coco::model
