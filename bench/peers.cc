// SPDX-License-Identifier: BSD-3-Clause
#include "peers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace bench {
namespace {

// The rank that lies `sign` times the offset from `rank`; offsets are numbers with a digit for each
// dimension.
int rank_at(const std::vector<int>& dims, int radius, int rank, int offset, int sign) {
    int there = 0, width = 1, here = rank;
    for (std::size_t d = dims.size(); d-- > 0; here /= dims[d], offset /= 2 * radius + 1) {
        int away = sign * (offset % (2 * radius + 1) - radius);
        there += width * (((here % dims[d] + away) % dims[d] + dims[d]) % dims[d]);
        width *= dims[d];
    }
    return there;
}

void keep_others_once(std::vector<int>& list, int rank) {
    std::vector<int> kept;
    for (int r : list)
        if (r != rank && std::find(kept.begin(), kept.end(), r) == kept.end()) kept.push_back(r);
    list = kept;
}

}  // namespace

Peers random_peers(double density, int seed, int rank, int ranks) {
    auto is_edge = [&](int from, int to) {
        return from != to && static_cast<double>(mix(seed, from, to) >> 11) < density * 0x1p53;
    };
    Peers peers;
    for (int r = 0; r < ranks; ++r) {
        if (is_edge(r, rank)) peers.sources.push_back(r);
        if (is_edge(rank, r)) peers.destinations.push_back(r);
    }
    return peers;
}

Peers moore_peers(const std::vector<int>& dims, int radius, bool repeated, int rank) {
    int offsets = static_cast<int>(std::pow(2 * radius + 1, dims.size()));
    Peers peers;
    for (int i = 0; i < offsets; ++i) {
        if (i == offsets / 2) continue;  // the middle: this rank itself
        peers.destinations.push_back(rank_at(dims, radius, rank, i, 1));
        peers.sources.push_back(rank_at(dims, radius, rank, i, -1));
    }
    if (!repeated)
        for (auto* list : {&peers.sources, &peers.destinations}) keep_others_once(*list, rank);
    return peers;
}

unsigned long mix(unsigned long a, unsigned long b, unsigned long c) {
    unsigned long x = a * 0x9e3779b97f4a7c15 + b;
    for (unsigned long more : {c, 0ul}) {  // splitmix64
        x += 0x9e3779b97f4a7c15;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
        x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
        x = (x ^ (x >> 31)) + more;
    }
    return x;
}

}  // namespace bench
