// SPDX-License-Identifier: BSD-3-Clause
//
// A rank's knowledge of the process topology of a communicator: its own edges, and the shares of the curves
// over its node's edges. Made by the first call on neighbours of an open communicator (look_up.h), kept with
// it, freed with it. Thread safety: that of its communicator.
//
// Where two ranks have several edges, MPI libraries differ in which block of the sender is which of the
// receiver's, even from one collective to the next: MPICH 4.0 crosses them in MPI_Neighbor_alltoall and not
// in alltoallv, Open MPI 4.1 crosses them in Cartesian topologies and not in graphs. So the library is asked:
// each of the three forms once carries the numbers of the blocks along the edges.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/check.h"
#include "mpi/wire.h"
#include "schedule/bundles.h"
#include "schedule/combining.h"
#include "schedule/edges.h"
#include "stats/stats.h"

namespace coco::comm {

struct Neighbors {
    stats::Reason closed = stats::Reason::none;  // not none: all calls on neighbours are handed back
    // The graphs as alltoall, alltoallv and alltoallw join blocks; only one where all three agree on all
    // ranks.
    std::vector<schedule::Neighborhood> graphs;
    bool has_rank_without_edges = false;  // some rank has no edge at all, and knows nothing of block sizes
    // The larger of a rank's two block sizes is the same on all ranks, in a plain form (schedule/sides.h).
    bool sizes_agree = false;
    bool one_size = false;                  // likewise, and a rank's two sizes are the same
    std::uint64_t edges_between_nodes = 0;  // the sum over all ranks
    std::int32_t most_blocks = 0;           // the most in any rank's send or receive buffer
    bool has_readers = false;               // some other rank of the node receives from this one
    bool sends_nothing = false, receives_nothing = false;  // this rank, to or from anybody
    struct Run {
        std::int32_t first, count;
    };
    // The blocks that this rank sends: those that other ranks of the node receive, and the others.
    std::vector<Run> read_by_mates;
    std::vector<std::int32_t> unread;
    // Blocks of this rank that go to nobody and come from nobody: they are not touched, whatever is said of
    // them.
    std::vector<std::int32_t> to_nobody, from_nobody;
    // The wire on one node, for buffers that peers cannot read. (Over several nodes the communicator has
    // one.)
    std::unique_ptr<mpi::Wire> wire;

    struct Kept {
        algorithms::Collective collective;
        schedule::Cut cut;
        std::unique_ptr<schedule::EdgeShare> share;
    };
    std::vector<Kept> shares;
    struct KeptBundles {
        const schedule::Neighborhood* graph;
        bool personal;
        std::int32_t leaders;
        std::unique_ptr<schedule::Bundles> bundles;
    };
    std::vector<KeptBundles> bundles;

    struct Pattern {
        const schedule::Neighborhood* graph;
        std::int32_t threshold, depth;
        std::unique_ptr<schedule::Combining> made;
    };
    std::vector<Pattern> patterns;

    const schedule::Neighborhood& graph_of(algorithms::Collective collective) const {
        COCO_CHECK_DEAR(base::is_neighbor(collective) && !graphs.empty(),
                        "a graph is that of a collective of neighbours");
        std::size_t form = collective == algorithms::Collective::neighbor_alltoallv   ? 1
                           : collective == algorithms::Collective::neighbor_alltoallw ? 2
                                                                                      : 0;
        return graphs[form < graphs.size() ? form : 0];
    }
};

}  // namespace coco::comm
