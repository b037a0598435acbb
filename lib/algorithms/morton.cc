// SPDX-License-Identifier: BSD-3-Clause
//
// Source:     Li, Zhang, Hoefler 2018, sections 2.1 and 2.2 (SH-CO). The paper waits for all ranks before
//             and after. We wait for those whose areas we touch, and for those who touch ours. If a side of
//             the matrix is odd, the paper leaves open which half is the longer: here the first.
// Idea:       All blocks are a matrix, with a row for each receiver and a column for each sender. A Morton
//             curve through it is cut into P equal shares, and each rank copies the blocks of its share,
//             whoever sends and receives them. A share has about sqrt(P) senders and sqrt(P) receivers,
//             whose lines stay in the rank's cache.
// Needs:      one node; send and receive buffers on the shared heap. Neighbours: any nodes
// Steps:      per rank P copies, 2 raises, about 4 sqrt(P) waits
// Neighbours: each rank copies an equal share of the edges within the node (section 3 of the paper); a
//             message for each edge between nodes
// Bytes:      per rank P blocks
// Scratch:    none
// Good for:   blocks smaller than a few cache lines; allgather of blocks up to half of the cache
#include <numeric>

#include "algorithms/curve.h"
#include "algorithms/edges.h"
#include "base/index.h"

namespace coco::algorithms {

schedule::Schedule make_morton(const Shape& shape) {
    if (shape.neighborhood != nullptr) return copy_edges(shape);
    Group all(base::index(shape.map->ranks()));
    std::iota(all.begin(), all.end(), 0);
    return along_curves(shape, {all});
}

}  // namespace coco::algorithms
