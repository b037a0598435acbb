// SPDX-License-Identifier: BSD-3-Clause
//
// The common part of the Morton algorithms. Called by morton.cc and numa_morton.cc. Thread safety: pure
// functions.
#pragma once
#include <cstdint>
#include <vector>

#include "algorithms/algorithm.h"

namespace coco::algorithms {

using Group = std::vector<std::int32_t>;  // ranks

// The schedule of an alltoall or allgather in which the ranks of each group fill the receive areas of their
// group. In step i they copy the blocks that come from the group i places after theirs, round robin. These
// blocks are a matrix with a row for each receiver and a column for each sender, and each rank copies an
// equal share of its Morton curve. A rank waits for the ranks whose areas it touches, just before it touches
// them, and at the end for the ranks that touch its own areas. Requires: every rank is in exactly one group.
schedule::Schedule along_curves(const Shape& shape, const std::vector<Group>& groups);

}  // namespace coco::algorithms
