// SPDX-License-Identifier: BSD-3-Clause
//
// The neighbours of a rank in the graphs that bench/neighbor and bench/simulate run on.
// Thread safety: pure functions.
#pragma once
#include <vector>

namespace bench {

// A rank's neighbours, in the order of the blocks.
struct Peers {
    std::vector<int> sources, destinations;
};

// Each edge from one rank to another with this probability, drawn from the seed.
Peers random_peers(double density, int seed, int rank, int ranks);
// On a torus of these dimensions, the ranks up to `radius` away in each, but for the offset 0. repeated: all
// (2 radius + 1)^d - 1 offsets, else every other rank once. (Sources are named in the order of the offsets
// from them to here.)
Peers moore_peers(const std::vector<int>& dims, int radius, bool repeated, int rank);

// A number that depends on nothing but a, b and c.
unsigned long mix(unsigned long a, unsigned long b, unsigned long c);

}  // namespace bench
