// SPDX-License-Identifier: BSD-3-Clause
//
// Source:   Xu, Venkata, Graham, Wang, Liu, Yu, SLOAVx: Scalable LOgarithmic AlltoallV Algorithm for
//           Hierarchical Multicore Systems, CCGrid 2013, section IV (SLOAVx)
// Idea:     Leaders of nodes run SLOAV over the bundles of their nodes. The paper collects the node's blocks
// in
//           shared memory along a tree, which finds the places that sizes and data go to; here every rank
//           writes its elements, where a block lies and how long it is, to their known places in the leader's
//           table at once, and the leader packs the blocks from where they lie on the shared heap. What has
//           come the ranks read where the leader received it. leaders=N: as in leader, where one rank that
//           packs for all of a large node takes longer than the messages.
// Needs:    nothing: any ranks, any nodes; send buffers on the shared heap, or short
// Steps:    per leader the messages of sloav among the nodes; others none, but for one for each block above
//           16 KiB to another node
// Bytes:    between two nodes of L ranks their L x L short blocks once for each digit of their distance that
//           is not 0, with heads and lengths as sloav's; per rank its blocks copied once, by the leader once
//           for each message
// Scratch:  per leader 2 L P elements of 32 bytes, and what sloav takes; others L
// Good for: short blocks and many ranks on a node
#include "algorithms/algorithm.h"

namespace coco::algorithms {

schedule::Schedule make_leader(const Shape& shape);

schedule::Schedule make_sloavx(const Shape& shape) {
    Shape over_nodes = shape;
    over_nodes.parameters.inner = Inner::bruck;
    return make_leader(over_nodes);
}

}  // namespace coco::algorithms
