// SPDX-License-Identifier: BSD-3-Clause
//
// Source:     Xu, Venkata, Graham, Wang, Liu, Yu 2013, section IV (SLOAVx). The paper collects the node's
//             blocks in shared memory along a tree, which finds the places that sizes and data go to. Here
//             every rank writes its elements to their known places in the leader's table at once.
// Idea:       Leaders of nodes run sloav over the bundles of their nodes. A leader packs the blocks from
//             where they lie on the shared heap, and the ranks of a node read what has come where their
//             leader received it. leaders=N: as in leader, for large nodes, where one rank would pack
//             longer than the messages take.
// Needs:      nothing: any ranks, any nodes; send buffers on the shared heap, or short
// Steps:      per leader the messages of sloav among the nodes; others none, but for one for each long
//             block (as in sloav) to another node
// Bytes:      between two nodes of L ranks their L x L short blocks once for each digit of their distance
//             that is not 0, with heads and lengths as sloav's; per rank its blocks copied once, by the
//             leader once for each message
// Scratch:    per leader 2 L P elements of 32 bytes, and what sloav takes; others L
// Good for:   short blocks and many ranks on a node
#include "algorithms/algorithm.h"

namespace coco::algorithms {

schedule::Schedule make_leader(const Shape& shape);

schedule::Schedule make_sloavx(const Shape& shape) {
    Shape over_nodes = shape;
    over_nodes.parameters.inner = Inner::bruck;
    return make_leader(over_nodes);
}

}  // namespace coco::algorithms
