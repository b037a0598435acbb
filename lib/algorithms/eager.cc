// SPDX-License-Identifier: BSD-3-Clause
//
// Source:     libcoco's own. MPI libraries copy in and out of shared memory in the same way, with one
//             synchronisation for a message; here it is one for a call.
// Idea:       A rank copies what it owes into its scratch, says so, and takes its own blocks from the
//             others' scratch. Nobody waits for its readers: scratch is a piece of a ring, which is written
//             again only when all ranks have left the call that it was for. So the root of a bcast runs
//             ahead of its readers.
// Needs:      one node; any buffers. Neighbours: any nodes
// Steps:      alltoall per rank 2 P - 1 copies, allgather P + 1, bcast 1; 2 raises, P - 1 waits (bcast 1)
// Neighbours: two copies for each edge within the node, a message for each between nodes
// Bytes:      alltoall per rank 2 P - 1 blocks, allgather P + 1, bcast 1
// Scratch:    alltoall per rank P - 1 blocks, allgather 1, bcast 1 at the root
// Good for:   small blocks, where a synchronisation costs more than a copy; buffers outside the shared heap
#include "algorithms/blocks.h"
#include "algorithms/edges.h"
#include "base/check.h"
#include "schedule/order.h"

namespace coco::algorithms {
namespace {

using schedule::Area;
using schedule::kArrived;
using schedule::kDone;

// Where `sender` leaves the block for `receiver`.
schedule::Place staged(Exchange exchange, std::int32_t sender, std::int32_t receiver) {
    COCO_CHECK(sender != receiver, "a rank leaves no block for itself");
    if (exchange != Exchange::alltoall) return {sender, Area::scratch, 0};
    return {sender, Area::scratch, receiver > sender ? receiver - 1 : receiver};
}

schedule::Schedule make_bcast(const Shape& shape) {
    COCO_CHECK(shape.root >= 0 && shape.root < shape.map->ranks(), "the root is one of the ranks");
    schedule::Builder steps;
    const std::int32_t root = shape.root;
    if (shape.rank != root)
        steps.wait(root, kArrived).copy({root, Area::scratch, 0}, {shape.rank, Area::recv, 0});
    else if (shape.map->ranks() > 1)
        steps.scratch(1).copy({root, Area::send, 0}, {root, Area::scratch, 0}).raise(kArrived);
    return steps.raise(kDone).take();
}

}  // namespace

schedule::Schedule make_eager(const Shape& shape) {
    if (shape.exchange == Exchange::bcast) return make_bcast(shape);
    if (shape.neighborhood != nullptr) return stage_edges(shape);
    schedule::Builder steps;
    const auto peers = schedule::peers_nearest_first(*shape.map, shape.rank);
    const bool personal = shape.exchange == Exchange::alltoall;
    if (!peers.empty()) steps.scratch(personal ? shape.map->ranks() - 1 : 1);
    for (std::size_t i = 0; i < (personal ? peers.size() : std::size_t{!peers.empty()}); ++i)
        steps.copy(sent(shape.exchange, shape.rank, peers[i]), staged(shape.exchange, shape.rank, peers[i]));
    steps.raise(kArrived);
    copy_block(steps, shape.exchange, shape.rank, shape.rank);
    for (std::int32_t peer : peers)
        steps.wait(peer, kArrived).copy(staged(shape.exchange, peer, shape.rank), received(peer, shape.rank));
    return steps.raise(kDone).take();
}

}  // namespace coco::algorithms
