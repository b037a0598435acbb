// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/narrowed.h"

#include <climits>
#include <vector>

#include "dispatch/entry.h"
#include "mpi/library.h"

namespace coco::dispatch {
namespace {

using algorithms::Collective;

struct Blocks {
    int send = 0, recv = 0;
};

Blocks neighbor_blocks(mpi::Comm comm) {
    const mpi::Library& lib = mpi::lib();
    int kind = lib.constants.undefined;
    Blocks blocks;
    if (lib.Topo_test(comm, &kind) != mpi::kSuccess) return blocks;
    if (kind == lib.constants.cart) {
        int dimensions = 0;
        lib.Cartdim_get(comm, &dimensions);
        blocks.send = blocks.recv = 2 * dimensions;
    } else if (kind == lib.constants.graph) {
        int rank = 0;
        lib.Comm_rank(comm, &rank);
        lib.Graph_neighbors_count(comm, rank, &blocks.send);
        blocks.recv = blocks.send;
    } else if (kind == lib.constants.dist_graph) {
        int weighted = 0;
        lib.Dist_graph_neighbors_count(comm, &blocks.recv, &blocks.send, &weighted);
    }
    return blocks;
}

// How many blocks each side has counts for; none where the handle is no communicator.
Blocks blocks_of(const Args& args) {
    if (is_neighbor(args.collective)) return neighbor_blocks(args.comm);
    const mpi::Library& lib = mpi::lib();
    int inter = 0, ranks = 0;
    if (lib.Comm_test_inter(args.comm, &inter) != mpi::kSuccess) return {};
    (inter ? lib.Comm_remote_size : lib.Comm_size)(args.comm, &ranks);
    return {ranks, ranks};
}

// Makes ints of numbers, and knows whether all of them fitted.
class Ints {
  public:
    std::vector<int> of(const Numbers& numbers, int count) {
        std::vector<int> ints;
        for (int i = 0; numbers && i < count; ++i) ints.push_back(of(numbers[i]));
        return ints;
    }
    int of(std::int64_t number) {
        fit_ = fit_ && number >= INT_MIN && number <= INT_MAX;
        return static_cast<int>(number);
    }
    bool fit() const { return fit_; }

  private:
    bool fit_ = true;
};

struct Side {
    int count;
    std::vector<int> counts, displacements;
    std::vector<mpi::Aint> bytes_at;  // of neighbor_alltoallw, whose displacements are wide anyway
};

Side read(const BufferArgs& args, int blocks, bool wide, Ints& ints) {
    Side side{.count = ints.of(args.count),
              .counts = ints.of(args.counts, blocks),
              .displacements = {},
              .bytes_at = {}};
    for (int i = 0; wide && args.displacements && i < blocks; ++i)
        side.bytes_at.push_back(args.displacements[i]);
    if (!wide) side.displacements = ints.of(args.displacements, blocks);
    return side;
}

int call(const Args& args, const Side& send, const Side& recv) {
    const mpi::Library& lib = mpi::lib();
    const BufferArgs &s = args.send, &r = args.recv;
    void* const to = const_cast<void*>(r.buffer);
    const int *sc = send.counts.data(), *sd = send.displacements.data();
    const int *rc = recv.counts.data(), *rd = recv.displacements.data();
    switch (args.collective) {
        case Collective::alltoall:
            return lib.Alltoall(s.buffer, send.count, s.type, to, recv.count, r.type, args.comm);
        case Collective::alltoallv:
            return lib.Alltoallv(s.buffer, sc, sd, s.type, to, rc, rd, r.type, args.comm);
        case Collective::alltoallw:
            return lib.Alltoallw(s.buffer, sc, sd, s.types.array(), to, rc, rd, r.types.array(), args.comm);
        case Collective::allgather:
            return lib.Allgather(s.buffer, send.count, s.type, to, recv.count, r.type, args.comm);
        case Collective::allgatherv:
            return lib.Allgatherv(s.buffer, send.count, s.type, to, rc, rd, r.type, args.comm);
        case Collective::bcast:
            return lib.Bcast(to, recv.count, r.type, args.root, args.comm);
        case Collective::neighbor_alltoall:
            return lib.Neighbor_alltoall(s.buffer, send.count, s.type, to, recv.count, r.type, args.comm);
        case Collective::neighbor_alltoallv:
            return lib.Neighbor_alltoallv(s.buffer, sc, sd, s.type, to, rc, rd, r.type, args.comm);
        case Collective::neighbor_alltoallw:
            return lib.Neighbor_alltoallw(s.buffer, sc, send.bytes_at.data(), s.types.array(), to, rc,
                                          recv.bytes_at.data(), r.types.array(), args.comm);
        case Collective::neighbor_allgather:
            return lib.Neighbor_allgather(s.buffer, send.count, s.type, to, recv.count, r.type, args.comm);
        case Collective::neighbor_allgatherv:
            return lib.Neighbor_allgatherv(s.buffer, send.count, s.type, to, rc, rd, r.type, args.comm);
    }
    __builtin_unreachable();
}

}  // namespace

int call_narrowed(const Args& args) {
    const Blocks blocks = is_sized(args.collective) ? blocks_of(args) : Blocks{};
    const bool wide = args.collective == Collective::neighbor_alltoallw;
    Ints ints;
    // In place nothing is said of the send side.
    const bool in_place = args.send.buffer == mpi::lib().constants.in_place;
    const Side send = in_place ? Side{} : read(args.send, blocks.send, wide, ints);
    const Side recv = read(args.recv, blocks.recv, wide, ints);
    if (!ints.fit()) return raise_error(args.comm, mpi::lib().constants.err_count);
    return call(args, send, recv);
}

}  // namespace coco::dispatch
