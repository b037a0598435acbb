// SPDX-License-Identifier: BSD-3-Clause
//
// Every collective against the MPI library's own: all basic types, derived types, in place, zero counts,
// MPI_BOTTOM, every kind of memory, communicators of every make, large blocks, large-count forms.
//
//   collectives_test whole  all of that, as without a word
//   collectives_test short  with fewer types, fewer pairs of types and of kinds of memory
//   collectives_test bcast  all that is said of bcast, and a little of the others
#include <mpi.h>

#include <string>
#include <vector>

#include "call.h"
#include "types.h"

namespace {

using namespace test;

bool g_short = false, g_bcast = false;

int size_of(MPI_Comm comm) {
    int size = 0;
    MPI_Comm_size(comm, &size);
    return size;
}

int rank_in(MPI_Comm comm) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

std::uint64_t next_seed() {
    static std::uint64_t calls = 0;
    return mix(++calls * 64 + static_cast<std::uint64_t>(world_rank())) & ~std::uint64_t{1};
}

// How many units rank `from` owes rank `to`: uneven, some zero, the same in both directions.
int uneven_units(int from, int to, int units) { return (from * to + from + to) % 4 * units; }

std::vector<int> packed_displacements(const std::vector<int>& counts, int gap) {
    std::vector<int> at;
    int next = 0;
    for (int count : counts) {
        at.push_back(next);
        next += count + gap;
    }
    return at;
}

// Fills both sides of a call with `units` units per block (v and w forms: multiples of it) of the given
// types. Gaps between the blocks of v and w forms must stay untouched.
void shape_call(Call& c, const Type& send, const Type& recv, int units) {
    const int peers = peers_of(c.comm), me = rank_in(c.comm);
    const bool uneven = c.kind == Kind::alltoallv || c.kind == Kind::alltoallw;
    auto side = [&](const Type& type, int blocks) {
        std::vector<int> counts;
        for (int i = 0; i < blocks; ++i)
            counts.push_back((uneven ? uneven_units(me, i, units) : (i % 3) * units) / type.units);
        Side s{{type.handle}, counts, packed_displacements(counts, 2)};
        if (c.kind == Kind::alltoallw) {
            MPI_Aint lower, extent;
            MPI_Type_get_extent(type.handle, &lower, &extent);
            s.types.assign(static_cast<std::size_t>(blocks), type.handle);
            if (blocks == 1) s.types.push_back(type.handle);  // two types: the displacements count bytes
            for (int& d : s.displacements) d *= static_cast<int>(extent);
        }
        return s;
    };
    if (uneven || c.kind == Kind::allgatherv) {
        c.recv = side(recv, peers);
        c.send = uneven ? side(send, peers) : Side{{send.handle}, {(me % 3) * units / send.units}, {}};
    } else {
        c.send = {{send.handle}, {units / send.units}, {}};
        c.recv = {{recv.handle}, {units / recv.units}, {}};
    }
    c.seed = next_seed();
}

using Kinds = std::vector<Kind>;
const Kinds kAllKinds = {Kind::alltoall,  Kind::alltoallv,  Kind::alltoallw,
                         Kind::allgather, Kind::allgatherv, Kind::bcast};

void run_kinds(MPI_Comm comm, const Type& send, const Type& recv, int units,
               Placement send_at = Placement::heap, Placement recv_at = Placement::heap,
               const Kinds& kinds = kAllKinds) {
    for (Kind kind : kinds) {
        if (g_bcast && kind != Kind::bcast) continue;
        Call c;
        c.kind = kind;
        c.comm = comm;
        c.root = units % size_of(comm);
        c.send_at = send_at;
        c.recv_at = recv_at;
        shape_call(c, send, recv, units);
        verify(c);
        if (c.kind == Kind::bcast) continue;
        c.in_place = true;
        c.send = {};
        c.seed = next_seed();
        verify(c);
    }
}

void basic_types(MPI_Comm comm) {
    const std::vector<Family> families = basic_families();
    for (std::size_t i = 0; i < families.size(); i += g_short ? 5 : 1)
        for (int units : {1, 3, 40}) run_kinds(comm, families[i].types[0], families[i].types[0], units);
}

// Each type against each other type of its family; ranks differ in what they take. Open MPI 4.1 takes its
// choice of allgatherv and bcast from local types and hangs when they differ; there is nothing to compare
// with then.
void derived_types(MPI_Comm comm, const Family& family) {
    const Kinds mixing = {Kind::alltoall, Kind::alltoallv, Kind::alltoallw, Kind::allgather};
    const int n = static_cast<int>(family.types.size());
    for (int i = 0; i < (g_short ? 2 : n * 2); ++i) {
        const Type& send = family.types[static_cast<std::size_t>((i + rank_in(comm)) % n)];
        const Type* recv = &family.types[static_cast<std::size_t>((i * 5 + 3 * rank_in(comm)) % n)];
        if (!recv->receives) recv = &family.types[0];
        for (int units : {family.multiple, family.multiple * 50})
            run_kinds(comm, send, *recv, units, Placement::heap, Placement::heap, mixing);
    }
    for (const Type& type : family.types)  // the same everywhere
        if (type.receives) run_kinds(comm, type, type, family.multiple * 4);
}

void placements(MPI_Comm comm) {
    const Type type{"int", MPI_INT, 1};
    for (int i = 0; i < kPlacements; ++i)
        for (int j = g_short ? i : 0; j < (g_short ? i + 1 : kPlacements); ++j)
            for (int units : {2, 600, 9000}) {
                if (g_short && units == 600) continue;
                auto at = [&](int shift) {
                    return static_cast<Placement>((shift + rank_in(comm)) % kPlacements);
                };
                run_kinds(comm, type, type, units, static_cast<Placement>(i), static_cast<Placement>(j));
                if (i == j) run_kinds(comm, type, type, units, at(i), at(i + 1));
            }
}

void sizes(MPI_Comm comm) {
    const Type type{"byte", MPI_BYTE, 1};
    for (int bytes : {0, 1, 7, 8, 9, 63, 64, 65, 255, 511, 512, 1000, 4095, 4096, 4097, 16384, 70001, 262144})
        if (!g_short || bytes % 2 != 0) run_kinds(comm, type, type, bytes);
    // Bcast has ways of its own for buffers that are longer than its segments together. Exchanges that exceed
    // the last cache are copied past it; it is enough that those of two and three ranks do.
    Kinds exchanges = kAllKinds;
    std::erase(exchanges, Kind::bcast);
    const auto large = [&](int mebibytes) { return (mebibytes << 20) / size_of(comm) + 5; };
    const int exchanged = g_short ? 1 : size_of(comm) <= 3 ? 8 : 3;
    run_kinds(comm, type, type, large(exchanged), Placement::heap, Placement::heap, exchanges);
    run_kinds(comm, type, type, large(g_short ? 1 : 8), Placement::heap, Placement::heap, {Kind::bcast});
}

void empty_calls(MPI_Comm comm) {
    const Type type{"int", MPI_INT, 1};
    for (int round = 0; round < 4; ++round)
        for (int k = 0; k < kKinds; ++k) {
            Call c;
            c.kind = static_cast<Kind>(k);
            c.comm = comm;
            c.null_when_empty = round % 2 == 0;
            shape_call(c, type, type, 0);
            verify(c);
        }
}

void large_counts(MPI_Comm comm) {
    const Type type{"int", MPI_INT, 1};
    for (int k = 0; k < kKinds; ++k)
        for (int units : {0, 1, 500, 20000}) {
            Call c;
            c.kind = static_cast<Kind>(k);
            c.comm = comm;
            c.large = true;
            shape_call(c, type, type, units);
            verify(c);
        }
}

// Blocks of different types in one call; the type of a pair of ranks is known to both.
void mixed_types(MPI_Comm comm) {
    const int size = size_of(comm), me = rank_in(comm);
    MPI_Datatype gap = resized(MPI_SHORT, 0, 4);
    const MPI_Datatype kinds[] = {MPI_INT, MPI_DOUBLE, gap, MPI_CHAR};
    for (int round = 0; round < 6; ++round) {
        Call c;
        c.kind = Kind::alltoallw;
        c.comm = comm;
        for (int i = 0; i < size; ++i) {
            c.send.types.push_back(kinds[(me + i + round) % 4]);
            c.send.counts.push_back((me + i) % 3 * 10 * round);
            c.send.displacements.push_back((size - 1 - i) * 1024);
        }
        if (size == 1) c.send.types.push_back(MPI_INT);
        c.recv = c.send;
        c.seed = next_seed();
        verify(c);
        c.in_place = true;
        c.send = {};
        verify(c);
    }
    MPI_Type_free(&gap);
}

// Buffers named by absolute addresses in the types.
void bottom(MPI_Comm comm) {
    const Functions called = called_functions(), own = library_functions();
    const int size = size_of(comm), ints = 25;
    for (int round = 0; round < 3; ++round) {
        std::vector<int> from(static_cast<std::size_t>(size * ints)), a(from.size(), -1), b(from.size(), -1);
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = rank_in(comm) * 100000 + static_cast<int>(i);
        auto absolute = [&](void* address) {
            MPI_Aint at;
            MPI_Get_address(address, &at);
            MPI_Datatype type;
            MPI_Type_create_hindexed(1, &ints, &at, MPI_INT, &type);
            return commit(type);
        };
        MPI_Datatype st = absolute(from.data()), at = absolute(a.data()), bt = absolute(b.data());
        CHECK(called.Alltoall(MPI_BOTTOM, 1, st, MPI_BOTTOM, 1, at, comm) == MPI_SUCCESS);
        own.Alltoall(MPI_BOTTOM, 1, st, MPI_BOTTOM, 1, bt, comm);
        CHECK_SAYING(a == b, "alltoall with MPI_BOTTOM");
        CHECK(called.Allgather(MPI_BOTTOM, 1, st, MPI_BOTTOM, 1, at, comm) == MPI_SUCCESS);
        own.Allgather(MPI_BOTTOM, 1, st, MPI_BOTTOM, 1, bt, comm);
        CHECK_SAYING(a == b, "allgather with MPI_BOTTOM");
        CHECK(called.Bcast(MPI_BOTTOM, 1, rank_in(comm) == 0 ? st : at, 0, comm) == MPI_SUCCESS);
        own.Bcast(MPI_BOTTOM, 1, rank_in(comm) == 0 ? st : bt, 0, comm);
        CHECK_SAYING(a == b, "bcast with MPI_BOTTOM");
        std::vector<int> ones(static_cast<std::size_t>(size), 1), bytes(ones.size(), 0);
        for (int i = 0; i < size; ++i) bytes[static_cast<std::size_t>(i)] = i;
        CHECK(called.Alltoallv(MPI_BOTTOM, ones.data(), bytes.data(), st, MPI_BOTTOM, ones.data(),
                               bytes.data(), at, comm) == MPI_SUCCESS);
        own.Alltoallv(MPI_BOTTOM, ones.data(), bytes.data(), st, MPI_BOTTOM, ones.data(), bytes.data(), bt,
                      comm);
        CHECK_SAYING(a == b, "alltoallv with MPI_BOTTOM");
        for (MPI_Datatype* t : {&st, &at, &bt}) MPI_Type_free(t);
    }
}

// The course that every communicator gets: a bit of everything.
void short_course(MPI_Comm comm) {
    const Type type{"int", MPI_INT, 1};
    warm_up(comm);
    for (int units : {1, 100, 5000}) run_kinds(comm, type, type, units);
    empty_calls(comm);
}

void communicators() {
    const int rank = world_rank(), size = world_size();
    auto course = [](MPI_Comm comm) {
        if (comm == MPI_COMM_NULL) return;
        short_course(comm);
        MPI_Comm_free(&comm);
    };
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    course(comm);
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &comm);  // backwards
    course(comm);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &comm);
    course(comm);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 0, rank * 7 % 5, &comm);
    course(comm);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &comm);  // each alone
    course(comm);
    short_course(MPI_COMM_SELF);
}

void intercommunicator() {
    const int rank = world_rank(), size = world_size();
    if (size < 2) return;
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &inter);
    const Type type{"int", MPI_INT, 1};
    for (int k : {0, 3}) {
        Call c;
        c.kind = static_cast<Kind>(k);
        c.comm = inter;
        shape_call(c, type, type, 11);
        for (int i = 0; i < 8; ++i) verify(c);
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

// A type that is freed and made anew may get the same handle: what was remembered of the old one is not true
// of the new one.
void types_made_anew(MPI_Comm comm) {
    for (int i = 0; i < 24; ++i) {
        Type type{"made anew", MPI_DATATYPE_NULL, 1};
        MPI_Type_vector(i % 3 + 1, 1, i % 2 + 1, MPI_INT, &type.handle);
        MPI_Type_commit(&type.handle);
        for (int k = 0; k < 2 * kKinds; ++k) {
            Call c;
            c.kind = static_cast<Kind>(k % kKinds);
            c.comm = comm;
            shape_call(c, type, type, 5);
            verify(c);
        }
        MPI_Type_free(&type.handle);
    }
}

}  // namespace

int main(int argc, char** argv) {
    char pool[Region::kPoolBytes];
    Region::stack_pool = pool;
    MPI_Init(&argc, &argv);
    const std::string mode = argc > 1 ? argv[1] : "";
    g_short = mode == "short";
    g_bcast = mode == "bcast";
    warm_up(MPI_COMM_WORLD);
    basic_types(MPI_COMM_WORLD);
    for (const Family& family : {int_family(), double_int_family(), byte_family(), double_family()})
        derived_types(MPI_COMM_WORLD, family);
    placements(MPI_COMM_WORLD);
    sizes(MPI_COMM_WORLD);
    empty_calls(MPI_COMM_WORLD);
    if (MPI_VERSION >= 4) large_counts(MPI_COMM_WORLD);
    mixed_types(MPI_COMM_WORLD);
    bottom(MPI_COMM_WORLD);
    types_made_anew(MPI_COMM_WORLD);
    communicators();
    intercommunicator();
    const int verdict = finish("collectives");
    MPI_Finalize();
    return verdict;
}
