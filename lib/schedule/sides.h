// SPDX-License-Identifier: BSD-3-Clause
//
// Which sides have blocks of one size in every right program. A side is all that a rank sends, or all that it
// receives. In a plain form of neighbours each side has one block size, and MPI asks only that both ends of
// an edge name the same size. So an edge makes the send side of its sender and the receive side of its
// receiver equal, and all sides that edges join in this way form a group. If the sides of each rank are in
// the same group, or in the same two groups, then the larger of the two sizes that a rank knows is the same
// number on all ranks. Called by comm, which lets the MPI library join what the ranks know. Thread safety:
// pure functions.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/edges.h"

namespace coco::schedule {

// Sides have numbers: 2 * rank is a rank's send side, 2 * rank + 1 its receive side. For each side, the array
// has the least side of its group, as far as is known: 2 * ranks numbers. A side without edges is alone in
// its group. The order in which knowledge is joined does not change the result.
using Sides = std::vector<std::int32_t>;

// The sides as far as one rank knows them by its own edges.
Sides sides_of(std::int32_t rank, std::int32_t ranks, const Neighborhood& neighborhood);
// Adds what `more` knows to `sides`. Requires: both are of the same number of ranks.
void join_sides(std::span<const std::int32_t> more, std::span<std::int32_t> sides);
// The number of groups, 1 or 2, if the sides of each rank are in these same groups; else 0. A side without
// edges does not count; if some rank has no edges at all, the result is 0. sides: joined over all ranks.
std::int32_t groups_of_all(std::span<const std::int32_t> sides);

}  // namespace coco::schedule
