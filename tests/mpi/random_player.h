// SPDX-License-Identifier: BSD-3-Clause
//
// Random calls of the six collectives that are not among neighbours, interleaved, on communicators that come
// and go. What all ranks of a call must agree on is drawn from a common generator, what each may choose alone
// from its own.
#pragma once
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "random_draw.h"

namespace test {

inline constexpr int kCommunicators = 6;

// Of ranks of `base`.
inline MPI_Comm random_communicator(Random& common, MPI_Comm base) {
    int rank, size;
    MPI_Comm_rank(base, &rank);
    MPI_Comm_size(base, &size);
    MPI_Comm comm;
    switch (common.below(5)) {
        case 0:
            MPI_Comm_dup(base, &comm);
            break;
        case 1:
            MPI_Comm_split(base, 0, size - rank, &comm);
            break;
        case 2:
            MPI_Comm_split(base, rank % (1 + common.below(3)), 0, &comm);
            break;
        case 3: {
            const std::uint64_t salt = common.next();
            const int parts = 1 + common.below(3);
            MPI_Comm_split(base, static_cast<int>(mix(salt + static_cast<unsigned>(rank)) % parts),
                           static_cast<int>(mix(salt * 3 + static_cast<unsigned>(rank)) % 1000), &comm);
            break;
        }
        default:
            MPI_Comm_split(base, common.once_in(6) ? rank : 0, rank, &comm);
    }
    return comm;
}

// Units that rank `from` owes rank `to`; symmetric, so that in place is legal too.
inline int pair_units(std::uint64_t salt, int from, int to, int units, int multiple) {
    const std::uint64_t low = static_cast<std::uint64_t>(std::min(from, to)),
                        high = static_cast<std::uint64_t>(from + to);
    const std::uint64_t draw = mix(salt + low * 1000 + high);
    return draw % 4 == 0
               ? 0
               : static_cast<int>(draw / 4 % static_cast<std::uint64_t>(units / multiple + 1)) * multiple;
}

// Plays random calls of the six collectives on communicators of the ranks of `base`, which come and go.
// Usable from any thread that no other player of the same base runs in, but for play() of a player without
// pools, which may run beside others.
struct RandomPlayer {
    MPI_Comm base;
    bool alone;  // no other thread plays: then communicators may be made, and regions lie in the pools

    Random common, own;
    std::vector<Family> families = lasting_families();
    std::vector<MPI_Comm> comms;

    explicit RandomPlayer(std::uint64_t seed, MPI_Comm on = MPI_COMM_WORLD, bool plays_alone = true)
        : base(on),
          alone(plays_alone),
          common(mix(seed)),
          own(mix(seed * 31 + static_cast<unsigned>(world_rank()) + 1)) {
        for (int i = 0; i < kCommunicators; ++i) comms.push_back(random_communicator(common, base));
    }
    RandomPlayer(const RandomPlayer&) = delete;
    RandomPlayer& operator=(const RandomPlayer&) = delete;
    ~RandomPlayer() {
        for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
    }

    void shape(Call& c, const Family& family, int units, const Type& send, const Type& recv) {
        int me = 0, peers = peers_of(c.comm);
        MPI_Comm_rank(c.comm, &me);
        const std::uint64_t salt = common.next();
        std::vector<int> blocks;
        const bool uneven = c.kind == Kind::alltoallv || c.kind == Kind::alltoallw;
        for (int i = 0; i < peers; ++i)
            blocks.push_back(uneven ? pair_units(salt, me, i, units, family.multiple)
                                    : pair_units(salt, i, i, units, family.multiple));
        if (uneven) {
            c.recv = spread_side(own, recv, blocks, c.kind == Kind::alltoallw);
            c.send = spread_side(own, send, blocks, c.kind == Kind::alltoallw);
        } else if (c.kind == Kind::allgatherv) {
            c.recv = spread_side(own, recv, blocks, false);
            c.send = {{send.handle}, {blocks[static_cast<std::size_t>(me)] / send.units}, {}};
        } else {
            c.send = {{send.handle}, {units / send.units}, {}};
            c.recv = {{recv.handle}, {units / recv.units}, {}};
        }
    }

    bool play() {
        const int slot = common.below(kCommunicators);
        if (alone && common.once_in(40)) {
            MPI_Comm_free(&comms[static_cast<std::size_t>(slot)]);
            comms[static_cast<std::size_t>(slot)] = random_communicator(common, base);
        }
        Call c;
        c.comm = common.once_in(3) ? base : comms[static_cast<std::size_t>(slot)];
        c.kind = static_cast<Kind>(common.below(kKinds));
        c.in_place = c.kind != Kind::bcast && common.once_in(4);
        c.large = MPI_VERSION >= 4 && common.once_in(8);
        const Family& family = common.of(families);
        const int block = family.unit_bytes * family.multiple;
        const int bytes = std::min(random_bytes(common, peers_of(base)), family.largest_bytes);
        const int units = bytes / block * family.multiple;
        // Both MPI libraries cut allgatherv and bcast by local types: there all ranks must take the same.
        const bool mixing = !common.once_in(3) && c.kind != Kind::allgatherv && c.kind != Kind::bcast;
        Random& chooser = mixing ? own : common;
        const Type recv = receiving_type(chooser, family);
        const Type send = mixing ? chooser.of(family.types) : recv;
        // Again as programs do, with other buffers, sizes and roots: what was read once is remembered.
        for (int times = common.once_in(3) ? 4 : 1; times > 0; --times)
            if (!play(c, family, units, send, recv)) return false;
        return true;
    }

    bool play(Call& c, const Family& family, int units, const Type& send, const Type& recv) {
        shape(c, family, units, send, recv);
        if (c.in_place) c.send = {};
        c.root = common.below(1 << 20) % peers_of(c.comm);
        c.send_at = random_placement(own, alone);
        c.recv_at = random_placement(own, alone);
        c.null_when_empty = own.once_in(2);
        c.fortran = invoke_fortran != nullptr && !c.in_place && !c.large && own.once_in(6);
        c.seed = own.next();
        if (own.once_in(30)) usleep(static_cast<useconds_t>(own.below(300)));
        if (verify(c)) return true;
        std::fprintf(stderr, "  of family %s, %d units, types '%s' to '%s'\n", family.name, units, send.name,
                     recv.name);
        return false;
    }
};

}  // namespace test
