// SPDX-License-Identifier: BSD-3-Clause
//
// Source:     Li, Zhang, Hoefler 2018, section 2.4 (SH-NUMA-CO). The paper has domains of equal size and
//             waits for all ranks. Here domains may differ (the matrix of a pair is a rectangle), and a
//             rank waits as in morton.
// Idea:       With s domains there are s steps. In step i the ranks of domain r copy the blocks that domain
//             r + i sends to r, in equal shares of the Morton curve over that pair. So they write to their
//             own domain only, and no two domains read from the same one at a time.
// Needs:      one node; send and receive buffers on the shared heap. Neighbours: any nodes
// Steps:      per rank P copies, 2 raises, in an alltoall of domains of q ranks about 2 (1 + s) sqrt(q)
//             waits
// Neighbours: as in morton, but each domain copies the edges that end there
// Bytes:      per rank P blocks
// Scratch:    none
// Good for:   the cases of morton when the ranks are spread over NUMA domains; with one domain it is morton
#include "algorithms/curve.h"
#include "algorithms/edges.h"
#include "base/index.h"

namespace coco::algorithms {

schedule::Schedule make_numa_morton(const Shape& shape) {
    if (shape.neighborhood != nullptr) return copy_edges(shape);
    std::vector<Group> domains;
    domains.reserve(base::index(shape.map->domains()));
    for (std::int32_t d = 0; d < shape.map->domains(); ++d) domains.push_back(shape.map->ranks_in_domain(d));
    return along_curves(shape, domains);
}

}  // namespace coco::algorithms
