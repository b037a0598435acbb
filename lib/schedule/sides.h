// SPDX-License-Identifier: BSD-3-Clause
//
// Which sides of which ranks have blocks of one size in every right program. In a plain form of neighbours a
// rank sends blocks of one size and receives blocks of one size; MPI asks only that both ends of an edge name
// the same. So the send side of a rank and the receive side of its neighbour are alike, and with them all
// that edges join so. Where each rank has sides in the same group, or in the same two, the larger of the two
// sizes that a rank knows is the same number on all ranks. Called by comm, which lets the MPI library join
// what the ranks know. Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/edges.h"

namespace coco::schedule {

// By side (2 * rank: send, 2 * rank + 1: receive) the least side that is known to be alike, 2 * ranks
// numbers. A side without edges is like no other. What is known has one such form: joined in any order it is
// the same.
using Sides = std::vector<std::int32_t>;

// What this rank knows by its own edges.
Sides sides_of(std::int32_t rank, std::int32_t ranks, const Neighborhood& neighborhood);
// What both know together. Requires: of as many ranks.
void join_sides(std::span<const std::int32_t> more, std::span<std::int32_t> sides);
// Of how many groups all ranks have their sides, if they are the same one or two; else 0. sides: joined over
// all ranks. A side without edges is in none; a rank without edges never agrees.
std::int32_t groups_of_all(std::span<const std::int32_t> sides);

}  // namespace coco::schedule
