// SPDX-License-Identifier: BSD-3-Clause
//
// The patterns of combining, kept with the process topology that they are for (see schedule/combining.h).
#include "schedule/combining.h"

#include "comm/comm.h"
#include "comm/letters.h"
#include "comm/neighbors.h"

namespace coco::comm {

const schedule::Combining& make_combining(Comm& comm, algorithms::Collective collective,
                                          const algorithms::Parameters& parameters) {
    Neighbors& near = *comm.neighbors;
    const schedule::Neighborhood& graph = near.graph_of(collective);
    for (const Neighbors::Pattern& kept : near.patterns)
        if (kept.graph == &graph && kept.threshold == parameters.threshold && kept.depth == parameters.depth)
            return *kept.made;
    schedule::CombiningMaker maker(comm.map, comm.rank, graph, parameters.threshold, parameters.depth);
    auto made = std::make_unique<schedule::Combining>(make_by_letters(comm, maker, "combining"));
    return *near.patterns
                .emplace_back(
                    Neighbors::Pattern{&graph, parameters.threshold, parameters.depth, std::move(made)})
                .made;
}

}  // namespace coco::comm
