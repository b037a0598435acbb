// SPDX-License-Identifier: BSD-3-Clause
//
// Whether MPI takes the arguments of a call; calls that it refuses are left to it, as it says why. Thread
// safety: pure functions, but for types that are looked up (datatype.h).
#pragma once
#include "dispatch/side_args.h"

namespace coco::dispatch {

// Whether no count is negative, and all types are valid; sized sides must have arrays.
bool counts_are_valid(const SideArgs& side);

// A null buffer is an error where there is data, unless types or displacements bring absolute addresses.
bool buffer_is_valid(const SideArgs& side);

// MPI requires equal amounts on both sides; programs whose plain forms differ are left to it. In v and w
// forms exec moves what there is: the others would wait for a rank that alone left its call to MPI.
// Neighbours' amounts have to agree along edges only.
bool amounts_agree(const Args& args, const SideArgs& send, const SideArgs& recv);

}  // namespace coco::dispatch
