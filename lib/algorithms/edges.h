// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges between neighbours by shared memory within nodes and a message for each edge between them: the
// common part of naive, morton, numa_morton and eager. Requires (both): shape.neighborhood and shape.share.
#pragma once
#include "algorithms/algorithm.h"

namespace coco::algorithms {

// Each rank copies the edges of its share, whoever sends and receives them, straight from send to receive
// buffers. It waits, just before it touches them, for the ranks whose areas it touches, and at the end for
// those that touch its own.
schedule::Schedule copy_edges(const Shape& shape);
// Each rank leaves its blocks in its scratch, where its neighbours of the node take them. It waits for nobody
// at the end. Requires: the share is the rank's own.
schedule::Schedule stage_edges(const Shape& shape);

}  // namespace coco::algorithms
