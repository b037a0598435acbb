// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_BOTTOM with types of absolute addresses that are no runs of bytes, as parallel I/O makes them: in every
// collective and form, also in place and with large counts, of small blocks and of blocks too large for a
// stage ring. Each call is made twice, once as programs do and once by the MPI library's own function, and
// every int of both receive buffers must end alike.
#include <mpi.h>

#include <vector>

#include "call.h"

namespace {

using namespace test;

constexpr int kMostElements = 2;   // of a block
constexpr int kManyInts = 10'000;  // of an element: such a call is made less often

// An array of blocks, named by its address alone. Elements are in two pieces, the second of which lies lower.
class Memory {
  public:
    // In `room`, which is used again: the kernel would take long to give fresh pages for each call.
    Memory(std::vector<int>& room, int blocks, int ints, bool as_darray)
        : stride_(2 * ints + 4), values_(room) {
        values_.resize(static_cast<std::size_t>(blocks * kMostElements * stride_));
        const int lengths[] = {ints - ints / 3, ints / 3};
        const MPI_Aint places[] = {address(ints + 2), address(1)};
        const MPI_Datatype bases[] = {MPI_INT, MPI_INT};
        MPI_Datatype pieces = MPI_DATATYPE_NULL, spread = MPI_DATATYPE_NULL;
        MPI_Type_create_struct(2, lengths, places, bases, &pieces);
        MPI_Type_create_resized(pieces, 0, stride_bytes(), &spread);
        type_ = as_darray ? darray_of_one(spread) : spread;
        if (as_darray) MPI_Type_free(&spread);
        MPI_Type_free(&pieces);
        MPI_Type_commit(&type_);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { MPI_Type_free(&type_); }

    MPI_Datatype type() const { return type_; }
    int stride_bytes() const { return stride_ * static_cast<int>(sizeof(int)); }
    void fill(int seed) {
        for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = seed + static_cast<int>(i);
    }
    bool operator==(const Memory& other) const { return values_ == other.values_; }

  private:
    // A type whose displacements cannot be told from how it was made.
    static MPI_Datatype darray_of_one(MPI_Datatype element) {
        const int one = 1, distribution = MPI_DISTRIBUTE_BLOCK, argument = MPI_DISTRIBUTE_DFLT_DARG;
        MPI_Datatype made = MPI_DATATYPE_NULL;
        MPI_Type_create_darray(1, 0, 1, &one, &distribution, &argument, &one, MPI_ORDER_C, element, &made);
        return made;
    }
    MPI_Aint address(int i) {
        MPI_Aint at = 0;
        MPI_Get_address(&values_[static_cast<std::size_t>(i)], &at);
        return at;
    }

    int stride_;
    std::vector<int>& values_;
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

int elements_of(int from, int to) { return (from + to) % (kMostElements + 1); }

Side plain_side(const Memory& memory) { return {{memory.type()}, {1}, {}}; }

// Blocks of a v or w form, of as many elements as `counts` says.
Side sized_side(const Memory& memory, bool w, const std::vector<int>& counts) {
    Side side{{memory.type()}, counts, {}};
    if (w) side.types.assign(counts.size(), memory.type());
    for (int i = 0; i < static_cast<int>(counts.size()); ++i)
        side.displacements.push_back(i * kMostElements * (w ? memory.stride_bytes() : 1));
    return side;
}

struct Peers {
    std::vector<int> sources, destinations;
};

Peers peers_of_call(const Call& c) {
    if (c.neighbor) {
        const NeighborLists lists = neighbors_of(c.comm);
        return {lists.sources, lists.destinations};
    }
    Peers peers;
    for (int i = 0; i < peers_of(c.comm); ++i) peers.sources.push_back(i);
    peers.destinations = peers.sources;
    return peers;
}

void shape(Call& c, const Peers& peers, const Memory& from, const Memory& to, int me) {
    const bool w = c.kind == Kind::alltoallw, personal = w || c.kind == Kind::alltoallv;
    c.send = plain_side(from);
    c.recv = plain_side(to);
    if (!personal && c.kind != Kind::allgatherv) return;
    std::vector<int> sent, received;
    for (int peer : peers.destinations) sent.push_back(elements_of(me, peer));
    for (int peer : peers.sources)
        received.push_back(personal ? elements_of(peer, me) : elements_of(peer, 0));
    c.recv = sized_side(to, w, received);
    if (personal)
        c.send = sized_side(from, w, sent);
    else
        c.send.counts[0] = elements_of(me, 0);
}

void compare(Call c, int ints, bool as_darray) {
    static const Functions called = called_functions(), own = library_functions();
    int rank = 0;
    MPI_Comm_rank(c.comm, &rank);
    const Peers peers = peers_of_call(c);
    const int blocks = static_cast<int>(std::max(peers.sources.size(), peers.destinations.size())) + 1;
    static std::vector<int> rooms[3];
    Memory from(rooms[0], blocks, ints, as_darray), ours(rooms[1], blocks, ints, as_darray),
        theirs(rooms[2], blocks, ints, as_darray);
    from.fill(rank * 1'000'000);
    const void* send = c.in_place ? MPI_IN_PLACE : MPI_BOTTOM;
    auto call = [&](const Functions& f, Memory& to) {
        to.fill(-rank * 1'000'000 - 500'000'000);
        shape(c, peers, from, c.kind == Kind::bcast && rank == c.root ? from : to, rank);
        return invoke(f, c, send, MPI_BOTTOM);
    };
    const int code = call(called, ours), own_code = call(own, theirs);
    const bool same = code == own_code && code == MPI_SUCCESS && ours == theirs;
    if (!same) describe(c, as_darray ? "differs with MPI_BOTTOM, darray" : "differs with MPI_BOTTOM", 0);
    CHECK(same);
}

void every_kind(MPI_Comm comm, bool neighbor, int ints, bool large) {
    for (int k = 0; k < (neighbor ? kKinds - 1 : kKinds); ++k)
        for (bool as_darray : {false, true})
            for (bool in_place : {false, true}) {
                Call c;
                c.kind = static_cast<Kind>(k);
                c.neighbor = neighbor;
                c.comm = comm;
                c.root = (k + ints) % peers_of(comm);
                c.large = large;
                c.in_place = in_place;
                if (in_place && (neighbor || c.kind == Kind::bcast)) continue;
                const int times = ints > kManyInts ? 2 : 3;
                for (int again = 0; again < times; ++again) compare(c, ints, as_darray);
            }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int size = world_size(), round = 1;
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &round, 0, &ring);
    warm_up(MPI_COMM_WORLD);
    warm_up(ring);
    for (int ints : {6, 1500, 40'000})
        for (bool large : {false, MPI_VERSION >= 4}) {
            every_kind(MPI_COMM_WORLD, false, ints, large);
            every_kind(ring, true, ints, large);
        }
    MPI_Comm_free(&ring);
    const int verdict = finish("bottom");
    MPI_Finalize();
    return verdict;
}
