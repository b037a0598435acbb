// SPDX-License-Identifier: BSD-3-Clause
//
// Source:     Li, Zhang, Hoefler 2018, section 4 (SH-Naive, in its NUMA-aware form). The paper puts a
//             barrier before and after the copies. We wait for the one peer whose block comes next, and at
//             the end for the ranks that read our send buffer.
// Idea:       Every rank copies its own blocks, straight from its peers' send buffers into its receive
//             buffer. It begins with the rank behind itself, in its own domain, so that the ranks do not
//             all read the same peer.
// Needs:      one node; send buffers on the shared heap. Neighbours: any nodes, any buffers
// Steps:      per rank P copies, 2 raises, 2 (P - 1) waits
// Neighbours: a copy for each edge within the node, a message for each between nodes
// Bytes:      per rank P blocks
// Scratch:    none
// Good for:   large blocks: the hardware prefetches long reads and writes; the yardstick of the others
#include "algorithms/blocks.h"
#include "algorithms/edges.h"
#include "schedule/order.h"

namespace coco::algorithms {

schedule::Schedule make_naive(const Shape& shape) {
    if (shape.neighborhood != nullptr) return copy_edges(shape);
    schedule::Builder steps;
    auto peers = schedule::peers_nearest_first(*shape.map, shape.rank);
    steps.raise(schedule::kArrived);
    copy_block(steps, shape.exchange, shape.rank, shape.rank);
    for (std::int32_t peer : peers) {
        steps.wait(peer, schedule::kArrived);
        copy_block(steps, shape.exchange, peer, shape.rank);
    }
    steps.raise(schedule::kDone);
    for (std::int32_t r = 0; r < shape.map->ranks(); ++r)
        if (r != shape.rank) steps.wait(r, schedule::kDone);
    return steps.take();
}

}  // namespace coco::algorithms
