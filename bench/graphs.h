// SPDX-License-Identifier: BSD-3-Clause
//
// The graphs that bench/neighbor runs on, by name, each seen from this rank. All ranks call alike, between
// MPI_Init and MPI_Finalize; what is wrong with a name ends the program as bench::give_up does.
#pragma once
#include <mpi.h>

#include <functional>
#include <string>
#include <vector>

namespace bench {

struct Graph {
    std::string name;
    // In the order of the blocks; MPI_PROC_NULL past the border of a grid that is not periodic.
    std::vector<int> sources, destinations;
    // A new communicator with this topology, which the caller frees. Ranks are those of MPI_COMM_WORLD.
    std::function<MPI_Comm()> make;
};

// Names of graphs, of ranks 0 to n-1, grids by MPI_Dims_create:
//   random:DENSITY[:SEED]  each edge from one rank to another with this probability, drawn from the seed
//   moore:D:R              on a torus of D dimensions, every other rank up to R away in each, named once
//   moore:D:R:all          the same with all (2R+1)^D - 1 offsets: repeated and self edges where it is small
//   cart:D                 MPI_Cart_create with D dimensions that are not periodic
//   torus:D                the same, periodic
// `shuffled`: neighbours of the first two are named in an order of this rank's own, sources in another than
// destinations.
Graph graph_of(const std::string& name, bool shuffled);

}  // namespace bench
