// SPDX-License-Identifier: BSD-3-Clause
//
// Seeded differential test of the five collectives among neighbours, against the MPI library's own functions,
// on Cartesian, graph and distributed graph communicators that come and go: borders, dimensions of one and
// two ranks, repeated edges, edges to oneself, ranks without edges, neighbours in any order. Usage:
// neighbor_test [SEED [CALLS]].
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string_view>
#include <vector>

#include "random_draw.h"

namespace {

using namespace test;

constexpr int kTopologies = 5;
constexpr int kNeighborKinds = 5;

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

std::vector<int> shuffled(std::vector<int> list, Random& own) {
    for (std::size_t i = list.size(); i > 1; --i)
        std::swap(list[i - 1], list[static_cast<std::size_t>(own.below(static_cast<int>(i)))]);
    return list;
}

MPI_Comm random_grid(Random& common, MPI_Comm parent, int size) {
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

MPI_Comm random_old_graph(Random& common, MPI_Comm parent, int size) {
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

MPI_Comm random_graph(Random& common, Random& own, MPI_Comm parent, int size) {
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

MPI_Comm random_topology(Random& common, Random& own) {
    MPI_Comm parent;
    const int rank = world_rank(), size = world_size();
    const int parts = common.once_in(3) ? 2 : 1;
    MPI_Comm_split(MPI_COMM_WORLD, rank % parts, common.once_in(2) ? rank : size - rank, &parent);
    int members = 0;
    MPI_Comm_size(parent, &members);
    const int kind = common.below(4);
    // Two halves draw alike: their generators must stay together, whatever their sizes.
    Random drawn(common.next());
    MPI_Comm comm = kind == 0   ? random_grid(drawn, parent, members)
                    : kind == 1 ? random_old_graph(drawn, parent, members)
                                : random_graph(drawn, own, parent, members);
    MPI_Comm_free(&parent);
    return comm;
}

// MPICH 4.0's alltoallw moves nothing, or hangs, where a rank sends more or fewer blocks than it receives.
bool library_can_w(MPI_Comm comm) {
    const NeighborLists lists = neighbors_of(comm);
    int even = lists.sources.size() == lists.destinations.size(), all_even = 0;
    MPI_Allreduce(&even, &all_even, 1, MPI_INT, MPI_MIN, comm);
    return all_even != 0;
}

// That ours does: a star whose middle sends to all and hears nothing, then the other way round.
void check_w_on_stars() {
    const int rank = world_rank(), size = world_size();
    for (bool inward : {false, true}) {
        const bool middle = rank == 0;
        std::vector<int> others;
        for (int r = 1; r < size; ++r) others.push_back(r);
        std::vector<int> in = middle   ? (inward ? others : std::vector<int>{})
                              : inward ? std::vector<int>{}
                                       : std::vector<int>{0};
        std::vector<int> out = middle   ? (inward ? std::vector<int>{} : others)
                               : inward ? std::vector<int>{0}
                                        : std::vector<int>{};
        const int sources = static_cast<int>(in.size()), destinations = static_cast<int>(out.size());
        in.resize(in.size() + 1);  // Open MPI takes no null pointer for an empty list
        out.resize(out.size() + 1);
        MPI_Comm comm;
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, sources, in.data(), MPI_UNWEIGHTED, destinations,
                                       out.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
        const std::vector<int> ones(static_cast<std::size_t>(size), 1);
        const std::vector<MPI_Datatype> types(ones.size(), MPI_INT);
        std::vector<MPI_Aint> at;
        for (int r = 0; r < size; ++r) at.push_back(r * static_cast<MPI_Aint>(sizeof(int)));
        int* sent = static_cast<int*>(std::malloc(ones.size() * sizeof(int)));
        int* came = static_cast<int*>(std::malloc(ones.size() * sizeof(int)));
        // The first calls are the library's, which may hang in w.
        for (int i = 0; i < 4; ++i) MPI_Neighbor_allgather(sent, 1, MPI_INT, came, 1, MPI_INT, comm);
        for (int i = 0; i < size; ++i) sent[i] = 100 * rank + i;
        MPI_Neighbor_alltoallw(sent, ones.data(), at.data(), types.data(), came, ones.data(), at.data(),
                               types.data(), comm);
        for (int i = 0; i < sources; ++i)
            CHECK(came[i] == 100 * in[static_cast<std::size_t>(i)] + (inward ? 0 : rank - 1));
        std::free(sent);
        std::free(came);
        MPI_Comm_free(&comm);
    }
}

#ifdef MPICH_VERSION
// A rank that sends to nobody names no type and no buffer, and one that receives nothing none either: MPICH
// takes that.
void check_nothing_of_no_type() {
    const int rank = world_rank(), size = world_size();
    const int before = rank - 1, behind = rank + 1;
    MPI_Comm chain;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank > 0, &before, MPI_UNWEIGHTED, behind < size, &behind,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &chain);
    for (int i = 0; i < 6; ++i) {
        int sent = rank * 10 + i, came = -1;
        const bool sends = behind<size, receives = rank> 0;
        MPI_Neighbor_allgather(sends ? &sent : nullptr, sends, sends ? MPI_INT : MPI_DATATYPE_NULL,
                               receives ? &came : nullptr, receives, receives ? MPI_INT : MPI_DATATYPE_NULL,
                               chain);
        CHECK(came == (receives ? sent - 10 : -1));
    }
    MPI_Comm_free(&chain);
}
#else
void check_nothing_of_no_type() {}
#endif

// One half of the ranks sends short blocks to the other half, and that sends long ones back.
void check_unlike_sizes() {
    const int rank = world_rank(), size = world_size();
    const bool low = rank < size / 2;
    std::vector<int> others;
    for (int r = low ? size / 2 : 0; r < (low ? size : size / 2); ++r) others.push_back(r);
    const int degree = static_cast<int>(others.size());
    MPI_Comm comm;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, others.data(), MPI_UNWEIGHTED, degree,
                                   others.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    constexpr int kShort = 2, kLong = 3000;
    const int out = low ? kShort : kLong, in = low ? kLong : kShort;
    std::vector<int> sent(static_cast<std::size_t>(degree * out)),
        came(static_cast<std::size_t>(degree * in));
    auto value = [](int from, int block, int i) { return from * 1000000 + block * 10000 + i; };
    // The first calls are the library's, and Open MPI 4.1 cannot do what follows.
    for (int i = 0; i < 4; ++i)
        MPI_Neighbor_allgather(sent.data(), 1, MPI_INT, came.data(), 1, MPI_INT, comm);
    for (int call = 0; call < 6; ++call)
        for (bool personal : {true, false}) {
            for (int b = 0; b < degree; ++b)
                for (int i = 0; i < out; ++i)
                    sent[static_cast<std::size_t>(b * out + i)] = value(rank, b, i) + call;
            std::fill(came.begin(), came.end(), -1);
            (personal ? MPI_Neighbor_alltoall : MPI_Neighbor_allgather)(sent.data(), out, MPI_INT,
                                                                        came.data(), in, MPI_INT, comm);
            const int mine = low ? rank : rank - size / 2;
            for (int b = 0; b < degree; ++b)
                for (int i = 0; i < in; ++i)
                    CHECK(came[static_cast<std::size_t>(b * in + i)] ==
                          value(others[static_cast<std::size_t>(b)], personal ? mine : 0, i) + call);
        }
    MPI_Comm_free(&comm);
}

// A rank that sends to nobody may say what it likes of what it would send.
void check_idle_sender() {
    const int rank = world_rank(), size = world_size();
    const bool middle = rank == 0;
    std::vector<int> others;
    for (int r = 1; r < size; ++r) others.push_back(r);
    const int to_middle = 0;
    MPI_Comm comm;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, middle ? size - 1 : 0, others.data(), MPI_UNWEIGHTED,
                                   middle ? 0 : 1, &to_middle, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    MPI_Datatype gapped;
    const int ints = 100000;
    MPI_Type_vector(ints, 1, 2, MPI_INT, &gapped);
    MPI_Type_commit(&gapped);
    std::vector<int> sent(2 * ints, rank), came(static_cast<std::size_t>(size), -1);
    for (int i = 0; i < 6; ++i)
        MPI_Neighbor_allgather(sent.data(), 1, middle ? gapped : MPI_INT, came.data(), 1, MPI_INT, comm);
    for (int r = 1; middle && r < size; ++r) CHECK(came[static_cast<std::size_t>(r - 1)] == r);
    MPI_Type_free(&gapped);
    MPI_Comm_free(&comm);
}

struct Player {
    Random common, own;
    std::vector<Family> families{int_family(), double_int_family(), byte_family(), double_family()};
    std::vector<MPI_Comm> comms;

    Player(std::uint64_t seed, int rank)
        : common(mix(seed)), own(mix(seed * 31 + static_cast<unsigned>(rank) + 1)) {
        for (int i = 0; i < kTopologies; ++i) comms.push_back(random_topology(common, own));
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
            comms[slot] = random_topology(common, own);
        }
        Call c;
        c.neighbor = true;
        c.comm = comms[slot];
        c.kind = static_cast<Kind>(common.below(kNeighborKinds));
        if (c.kind == Kind::alltoallw && !library_can_w(c.comm)) c.kind = Kind::alltoallv;
        c.large = MPI_VERSION >= 4 && common.once_in(8);
        const Family& family = common.of(families);
        const int block = family.unit_bytes * family.multiple;
        const int bytes = std::min(random_bytes(common, world_size()), family.largest_bytes);
        const int units = bytes / block * family.multiple;
        const Type recv = receiving_type(own, family);
        const Type send = own.of(family.types);
        for (int times = common.once_in(3) ? 4 : 1; times > 0; --times)
            if (!play(c, family, units, send, recv)) return false;
        return true;
    }

    bool play(Call& c, const Family& family, int units, const Type& send, const Type& recv) {
        shape(c, family, units, send, recv);
        c.send_at = static_cast<Placement>(own.below(kPlacements));
        c.recv_at = static_cast<Placement>(own.below(kPlacements));
        // MPICH takes no null buffer with a count above 0, though there be no block.
        const Blocks blocks = blocks_of(c);
        c.null_when_empty = blocks.sent != 0 && blocks.received != 0 && own.once_in(2);
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

void check_particulars() {
    const bool ours = std::getenv("LD_PRELOAD") != nullptr && std::getenv("COCO_DISABLE") == nullptr &&
                      std::getenv("COCO_HEAP_LIMIT") == nullptr;
    if (ours && world_size() > 1) {
        check_w_on_stars();
        check_unlike_sizes();
    }
    check_nothing_of_no_type();
    if (world_size() > 1) check_idle_sender();
}

}  // namespace

int main(int argc, char** argv) { return play_all<Player>(argc, argv, "neighbor", 1000, check_particulars); }
