// SPDX-License-Identifier: BSD-3-Clause
//
// Source:   Li, Zhang, Hoefler, Cache-Oblivious MPI All-to-All Communications Based on Morton Order, TPDS
// 2018,
//           sections 2.1 and 2.2 (SH-CO). The paper waits for all ranks before and after; we wait for those
//           whose areas we touch, and for those who touch ours. Where P is no power of two the paper leaves
//           open which half of an odd side is the longer: here the first.
// Idea:     All blocks are a matrix, a row for each receiver, a column for each sender. A Morton curve
// through it
//           is cut into P equal shares, and each rank copies the blocks of its share, whoever sends and
//           receives them: about sqrt(P) senders and sqrt(P) receivers, whose lines stay in its cache.
// Needs:    one node; send and receive buffers on the shared heap. Neighbours: any nodes
// Steps:    per rank P copies, 2 raises, about 4 sqrt(P) waits
//           Neighbours (section 3): copies in equal shares of the edges within the node, which need no order
//           of blocks; a message for each edge between nodes
// Bytes:    per rank P blocks
// Scratch:  none
// Good for: blocks smaller than a few cache lines; allgather of blocks up to half of the cache
#include <numeric>

#include "algorithms/curve.h"
#include "algorithms/edges.h"

namespace coco::algorithms {

schedule::Schedule make_morton(const Shape& shape) {
    if (shape.neighborhood != nullptr) return copy_edges(shape);
    Group all(static_cast<std::size_t>(shape.map->ranks()));
    std::iota(all.begin(), all.end(), 0);
    return along_curves(shape, {all});
}

}  // namespace coco::algorithms
