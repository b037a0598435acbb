// SPDX-License-Identifier: BSD-3-Clause
//
// The common part of the Morton algorithms. Called by morton.cc and numa_morton.cc.
#pragma once
#include <cstdint>
#include <vector>

#include "algorithms/algorithm.h"

namespace coco::algorithms {

using Group = std::vector<std::int32_t>;  // ranks

// The schedule of an alltoall or allgather in which the ranks of each group fill the receive areas of their
// group. In step i they take the blocks that come from the group i places after theirs, round robin: a matrix
// with a row for each receiver and a column for each sender, of whose Morton curve they copy equal shares. A
// rank waits, just before it touches them, for the ranks whose areas it touches, and at the end for those
// that touch its own, and for no other. Requires: every rank is in one group.
schedule::Schedule along_curves(const Shape& shape, const std::vector<Group>& groups);

}  // namespace coco::algorithms
