// SPDX-License-Identifier: BSD-3-Clause
//
// Programs make the same few calls again and again. What the last ones of each collective on this thread came to
// is remembered, so that the next one that is like one of them, with other buffers, another root, other counts of about the same size, goes to
// exec without being read, judged and chosen for anew. Called by entry.cc only. Thread safety: each thread
// has its own. Invariant: what is remembered holds as long as no communicator and no kept type was freed and MPI
// has not ended; nothing is remembered while calls are counted.
#pragma once
#include "dispatch/args.h"
#include "dispatch/read.h"
#include "exec/call.h"

namespace coco::dispatch {

// The arguments with which a call goes to exec, or the choice to leave it to the MPI library.
struct Repeat {
    comm::Comm* comm = nullptr;
    choose::Choice choice{};  // holds for so many of its cell's calls, and of the collective's
    bool is_left = false;     // to the MPI library; then `call` is unset
    bool is_usual = true;     // neither left nor measured
    exec::Call call{};
};

// (What is left to the MPI library goes by left.h from the next call on.)
// Returns: the call, read; null if it is unlike the last ones, or needs a second look. It stays until this
// thread's next call.
const Repeat* repeat_of(const Args& args);
// The same for a bcast whose type is not remembered, as those that programs make for one call: its bytes alone
// say what it is like.
const Repeat* repeat_by_bytes(const Args& args);
// Remembers a call that was chosen for, and read unless it is left, if its like can be read in short and the choice holds.
// generation: as it was before the types were looked up, as another thread may have freed one since. Requires: common is valid.
void remember(const Args& args, const CommonArguments& common, const Repeat& repeat,
              std::uint64_t generation);

// Whether such calls on this communicator are handed back whatever they name, as this thread's last ones were.
bool is_left_for_good(const Args& args);
void remember_left(const Args& args);

}  // namespace coco::dispatch
