// SPDX-License-Identifier: BSD-3-Clause
//
// Random calls of the five collectives among neighbours, on Cartesian, graph and distributed graph
// communicators that come and go: borders, dimensions of one and two ranks, repeated edges, edges to oneself,
// ranks without edges, neighbours in any order.
#pragma once
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "random_draw.h"
#include "support/open_comm.h"

namespace test {

inline constexpr int kTopologies = 5;
inline constexpr int kNeighborKinds = 5;

// How many edges lead from one rank to another: the same on all ranks.
class Edges {
  public:
    Edges(Random& common, bool symmetric)
        : salt_(common.next()), sparseness_(1 + common.below(5)), symmetric_(symmetric) {}
    int count(int from, int to) const {
        if (symmetric_ && from > to) std::swap(from, to);
        const std::uint64_t draw =
            mix(salt_ + static_cast<unsigned>(from) * 1000u + static_cast<unsigned>(to));
        if (draw % static_cast<unsigned>(sparseness_) != 0) return 0;
        return draw / 64 % 5 == 0 ? 2 : 1;
    }

  private:
    std::uint64_t salt_;
    int sparseness_;
    bool symmetric_;
};

inline std::vector<int> shuffled(std::vector<int> list, Random& own) {
    for (std::size_t i = list.size(); i > 1; --i)
        std::swap(list[i - 1], list[static_cast<std::size_t>(own.below(static_cast<int>(i)))]);
    return list;
}

inline MPI_Comm random_grid(Random& common, MPI_Comm parent, int size) {
    int extents[3] = {}, periods[3], dimensions = 1 + common.below(3);
    if (common.once_in(4)) extents[common.below(dimensions)] = 1;
    const bool uneven = size % 2 == 0 && common.once_in(3);
    if (uneven && dimensions > 1) extents[0] = 2;
    for (int& period : periods) period = common.below(2);
    int fixed = 1;
    for (int d = 0; d < dimensions; ++d) fixed *= extents[d] == 0 ? 1 : extents[d];
    const bool open = std::count(extents, extents + dimensions, 0) != 0;
    if (!open && fixed != size) std::fill(extents, extents + dimensions, 0);
    MPI_Dims_create(size, dimensions, extents);
    MPI_Comm comm;
    MPI_Cart_create(parent, dimensions, extents, periods, common.below(2), &comm);
    return comm;
}

inline MPI_Comm random_old_graph(Random& common, MPI_Comm parent, int size) {
    const Edges edges(common, true);
    std::vector<int> ends, neighbors;
    neighbors.reserve(1);  // MPICH takes no null edges, though there be none
    for (int a = 0; a < size; ++a) {
        for (int b = 0; b < size; ++b)
            for (int n = edges.count(a, b); n > 0; --n) neighbors.push_back(b);
        ends.push_back(static_cast<int>(neighbors.size()));
    }
    neighbors.reserve(1);  // MPICH takes no null pointer for an empty list
    MPI_Comm comm;
    MPI_Graph_create(parent, size, ends.data(), neighbors.data(), 0, &comm);
    return comm;
}

inline MPI_Comm random_graph(Random& common, Random& own, MPI_Comm parent, int size) {
    const Edges edges(common, common.once_in(3));
    int rank = 0;
    MPI_Comm_rank(parent, &rank);
    std::vector<int> sources, destinations;
    for (int peer = 0; peer < size; ++peer) {
        for (int n = edges.count(peer, rank); n > 0; --n) sources.push_back(peer);
        for (int n = edges.count(rank, peer); n > 0; --n) destinations.push_back(peer);
    }
    sources = shuffled(sources, own);
    destinations = shuffled(destinations, own);
    const int in = static_cast<int>(sources.size()), out = static_cast<int>(destinations.size());
    // Open MPI takes no null pointer for an empty list.
    sources.push_back(0);
    destinations.push_back(0);
    MPI_Comm comm;
    if (common.once_in(3)) {
        MPI_Dist_graph_create(parent, 1, &rank, &out, destinations.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                              &comm);
    } else {
        MPI_Dist_graph_create_adjacent(parent, in, sources.data(), MPI_UNWEIGHTED, out, destinations.data(),
                                       MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    }
    return comm;
}

inline MPI_Comm random_topology(Random& common, Random& own, MPI_Comm base) {
    MPI_Comm parent;
    int rank, size;
    MPI_Comm_rank(base, &rank);
    MPI_Comm_size(base, &size);
    const int parts = common.once_in(3) ? 2 : 1;
    MPI_Comm_split(base, rank % parts, common.once_in(2) ? rank : size - rank, &parent);
    int members = 0;
    MPI_Comm_size(parent, &members);
    const int kind = common.below(4);
    // Two halves draw alike: their generators must stay together, whatever their sizes.
    Random drawn(common.next());
    MPI_Comm comm = kind == 0   ? random_grid(drawn, parent, members)
                    : kind == 1 ? random_old_graph(drawn, parent, members)
                                : random_graph(drawn, own, parent, members);
    MPI_Comm_free(&parent);
    if (!drawn.once_in(4)) open_comm(comm);
    return comm;
}

// MPICH 4.0's alltoallw moves nothing, or hangs, where a rank sends more or fewer blocks than it receives.
inline bool library_can_w(MPI_Comm comm) {
    const NeighborLists lists = neighbors_of(comm);
    int even = lists.sources.size() == lists.destinations.size(), all_even = 0;
    MPI_Allreduce(&even, &all_even, 1, MPI_INT, MPI_MIN, comm);
    return all_even != 0;
}

// Open MPI 4.1's alltoallw for Fortran reads as many types as the communicator has ranks, whatever the
// neighbours.
inline bool library_can_fortran(const Call& c) {
    const NeighborLists lists = neighbors_of(c.comm);
    return c.kind != Kind::alltoallw || std::max(lists.sources.size(), lists.destinations.size()) <=
                                            static_cast<std::size_t>(peers_of(c.comm));
}

// Plays random calls among neighbours on topologies of the ranks of `base`, which come and go. One thread at
// a time.
struct NeighborPlayer {
    MPI_Comm base;
    Random common, own;
    std::vector<Family> families = lasting_families();
    std::vector<MPI_Comm> comms;

    explicit NeighborPlayer(std::uint64_t seed, MPI_Comm on = MPI_COMM_WORLD)
        : base(on), common(mix(seed)), own(mix(seed * 31 + static_cast<unsigned>(world_rank()) + 1)) {
        for (int i = 0; i < kTopologies; ++i) comms.push_back(random_topology(common, own, base));
    }
    NeighborPlayer(const NeighborPlayer&) = delete;
    NeighborPlayer& operator=(const NeighborPlayer&) = delete;
    ~NeighborPlayer() {
        for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
    }

    // Units of an edge; of an allgather, of all edges from a rank. From nobody: anything.
    static std::vector<int> units_of(const std::vector<int>& from, const std::vector<int>& to,
                                     std::uint64_t salt, int units, int multiple) {
        std::vector<int> all;
        for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i) {
            const std::uint64_t draw =
                mix(salt + static_cast<unsigned>(from[i] + 5) * 1000u + static_cast<unsigned>(to[i] + 5));
            const auto most = static_cast<std::uint64_t>(units / multiple + 1);
            all.push_back(draw % 4 == 0 ? 0 : static_cast<int>(draw / 4 % most) * multiple);
        }
        return all;
    }

    // A block that nobody sends or gets is not touched: it may lie where another block does.
    void lay_over(Side& side, const std::vector<int>& peers) {
        if (peers.size() < 2 || !own.once_in(2)) return;
        for (std::size_t i = 0; i < peers.size(); ++i)
            if (peers[i] == MPI_PROC_NULL) side.displacements[i] = side.displacements[(i + 1) % peers.size()];
    }

    void shape(Call& c, const Family& family, int units, const Type& send, const Type& recv) {
        int me = 0;
        MPI_Comm_rank(c.comm, &me);
        const NeighborLists lists = neighbors_of(c.comm);
        const std::uint64_t salt = common.next();
        const std::size_t most = std::max(lists.sources.size(), lists.destinations.size());
        const std::vector<int> here(most, me), nowhere(most, 0);
        // MPICH 4.0 looks at as many entries of each array as the communicator has ranks.
        auto not_empty = [&](Side side) {
            const auto ranks = static_cast<std::size_t>(peers_of(c.comm));
            side.counts.resize(std::max(side.counts.size(), ranks));
            side.displacements.resize(side.counts.size());
            if (side.types.size() > 1) side.types.resize(side.counts.size(), side.types[0]);
            return side;
        };
        if (c.kind == Kind::alltoallv || c.kind == Kind::alltoallw) {
            const bool w = c.kind == Kind::alltoallw;
            c.send = not_empty(
                spread_side(own, send, units_of(here, lists.destinations, salt, units, family.multiple), w));
            c.recv = not_empty(
                spread_side(own, recv, units_of(lists.sources, here, salt, units, family.multiple), w));
            lay_over(c.send, lists.destinations);
            lay_over(c.recv, lists.sources);
        } else if (c.kind == Kind::allgatherv) {
            c.recv = not_empty(spread_side(
                own, recv, units_of(lists.sources, nowhere, salt, units, family.multiple), false));
            lay_over(c.recv, lists.sources);
            c.send = {{send.handle}, {units_of({me}, {0}, salt, units, family.multiple)[0] / send.units}, {}};
        } else {
            c.send = {{send.handle}, {units / send.units}, {}};
            c.recv = {{recv.handle}, {units / recv.units}, {}};
        }
    }

    bool play() {
        const auto slot = static_cast<std::size_t>(common.below(kTopologies));
        if (common.once_in(30)) {
            MPI_Comm_free(&comms[slot]);
            comms[slot] = random_topology(common, own, base);
        }
        Call c;
        c.neighbor = true;
        c.comm = comms[slot];
        c.kind = static_cast<Kind>(common.below(kNeighborKinds));
        if (c.kind == Kind::alltoallw && !library_can_w(c.comm)) c.kind = Kind::alltoallv;
        c.large = MPI_VERSION >= 4 && common.once_in(8);
        const Family& family = common.of(families);
        const int block = family.unit_bytes * family.multiple;
        const int bytes = std::min(random_bytes(common, peers_of(base)), family.largest_bytes);
        const int units = bytes / block * family.multiple;
        const Type recv = receiving_type(own, family);
        const Type send = own.of(family.types);
        for (int times = common.once_in(3) ? 4 : 1; times > 0; --times)
            if (!play(c, family, units, send, recv)) return false;
        return true;
    }

    bool play(Call& c, const Family& family, int units, const Type& send, const Type& recv) {
        shape(c, family, units, send, recv);
        c.send_at = random_placement(own, true);
        c.recv_at = random_placement(own, true);
        // MPICH takes no null buffer with a count above 0, though there be no block.
        const Blocks blocks = blocks_of(c);
        c.null_when_empty = blocks.sent != 0 && blocks.received != 0 && own.once_in(2);
        c.fortran =
            invoke_fortran != nullptr && !c.in_place && !c.large && own.once_in(6) && library_can_fortran(c);
        c.seed = own.next();
        if (own.once_in(30)) usleep(static_cast<useconds_t>(own.below(300)));
        if (verify(c)) return true;
        std::fprintf(stderr, "  of family %s, %d units, types '%s' to '%s'", family.name, units, send.name,
                     recv.name);
        const NeighborLists lists = neighbors_of(c.comm);
        std::fprintf(stderr, "; to");
        for (int r : lists.destinations) std::fprintf(stderr, " %d", r);
        std::fprintf(stderr, "; from");
        for (int r : lists.sources) std::fprintf(stderr, " %d", r);
        std::fprintf(stderr, "\n");
        return false;
    }
};

}  // namespace test
