// SPDX-License-Identifier: BSD-3-Clause
// Large blocks of derived types, which go from layout to layout: subarrays, vectors, indexed and structured
// types of one another, other ones on each rank and for each block, on the heap, in static memory and in the
// program's own mappings. Every byte of the receive buffer is looked at, those between the elements too.
// usage: layouts_test [ROUNDS]
#include <mpi.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "support/check.h"
#include "support/open_comm.h"
#include "types.h"

namespace {

using test::world_rank;
using test::world_size;

using Random = std::mt19937;
int pick(Random& random, int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }

// A number of elements of a type that have so many ints together.
struct Block {
    MPI_Datatype type;
    int count;
    MPI_Aint true_lower, span;  // of all elements: from the lowest byte to behind the highest
};

MPI_Datatype committed(MPI_Datatype type) {
    MPI_Type_commit(&type);
    return type;
}
MPI_Datatype replaced(MPI_Datatype old, MPI_Datatype made) {
    MPI_Type_free(&old);
    return made;
}

MPI_Datatype subarray(Random& random, int ints) {
    int parts[3] = {1, 1, ints}, sizes[3], starts[3];
    while (parts[2] % 2 == 0 && parts[2] > 8) parts[2] /= 2, parts[pick(random, 0, 1)] *= 2;
    if (pick(random, 0, 1) == 1) std::swap(parts[0], parts[2]);
    for (int d = 0; d < 3; ++d) {
        starts[d] = pick(random, 0, 3);
        sizes[d] = parts[d] + starts[d] + pick(random, 0, 2);
    }
    MPI_Datatype made;
    MPI_Type_create_subarray(3, sizes, parts, starts,
                             pick(random, 0, 1) == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN, MPI_INT, &made);
    return made;
}

MPI_Datatype vector(Random& random, int ints) {
    const int length = 1 << pick(random, 0, 4);
    MPI_Datatype made;
    MPI_Type_vector(ints / length, length, length + pick(random, 0, 3), MPI_INT, &made);
    return made;
}

MPI_Datatype indexed(Random& random, int ints) {
    constexpr int kBlocks = 16;
    int lengths[kBlocks], starts[kBlocks], at = pick(random, 0, 9);
    for (int i = 0; i < kBlocks; ++i) {
        const int moved = i % 2 == 0 ? pick(random, 0, ints / kBlocks - 1) : 0;
        lengths[i] = ints / kBlocks + (i % 2 == 0 ? -moved : ints / kBlocks - lengths[i - 1]);
        starts[i] = at;
        at += lengths[i] + pick(random, 0, 5);
    }
    if (pick(random, 0, 1) == 1) std::swap(starts[3], starts[9]), starts[3] += ints, starts[9] += 3 * ints;
    MPI_Datatype made;
    MPI_Type_indexed(kBlocks, lengths, starts, MPI_INT, &made);
    return made;
}

// Half a vector, half a subarray.
MPI_Datatype structure(Random& random, int ints) {
    MPI_Datatype parts[2] = {vector(random, ints / 2), subarray(random, ints / 2)};
    MPI_Aint lower, span, starts[2] = {0, 0};
    MPI_Type_get_true_extent(parts[0], &lower, &span);
    starts[1] = lower + span + 4 * pick(random, 0, 9);
    const int lengths[2] = {1, 1};
    MPI_Datatype made;
    MPI_Type_create_struct(2, lengths, starts, parts, &made);
    for (MPI_Datatype& part : parts) MPI_Type_free(&part);
    return made;
}

// Backwards: the second plane lies before the first.
MPI_Datatype planes(Random& random, int ints) {
    MPI_Datatype plane = vector(random, ints / 4), made;
    MPI_Aint lower, span;
    MPI_Type_get_true_extent(plane, &lower, &span);
    MPI_Type_create_hvector(4, 1, -(span + 4 * pick(random, 0, 7)), plane, &made);
    return replaced(plane, made);
}

Block some(Random& random, int ints) {
    Block made{MPI_INT, ints, 0, 0};
    int each = ints;
    // Elements with room between them.
    const bool many = pick(random, 0, 2) == 0;
    if (many) each = ints / 8;
    switch (pick(random, 0, 6)) {
        case 0:
            break;
        case 1:
            made = {subarray(random, each), ints / each, 0, 0};
            break;
        case 2:
            made = {vector(random, each), ints / each, 0, 0};
            break;
        case 3:
            made = {indexed(random, each), ints / each, 0, 0};
            break;
        case 4:
            made = {structure(random, each), ints / each, 0, 0};
            break;
        case 5:
            made = {planes(random, each), ints / each, 0, 0};
            break;
        default:  // a lone int in a wide element
            MPI_Type_create_resized(MPI_INT, 0, 12, &made.type);
    }
    if (made.type == MPI_INT) MPI_Type_dup(MPI_INT, &made.type);
    MPI_Aint lower, extent;
    if (made.count > 1 && many) {
        MPI_Type_get_true_extent(made.type, &lower, &extent);
        MPI_Datatype wide;
        MPI_Type_create_resized(made.type, lower, extent + 4 * pick(random, 0, 3), &wide);
        made.type = replaced(made.type, wide);
    }
    committed(made.type);
    MPI_Type_get_extent(made.type, &lower, &extent);
    MPI_Type_get_true_extent(made.type, &made.true_lower, &made.span);
    made.span += (made.count - 1) * extent;
    return made;
}

// The memory of one side.
enum class Kind { heap, fixed, mapped, count };
class Memory {
  public:
    Memory(Kind kind, std::size_t bytes, int side) : kind_(kind), bytes_(bytes) {
        static unsigned char fixed[2][48 << 20];
        if (kind == Kind::fixed && bytes <= sizeof fixed[0])
            at = fixed[side];
        else if (kind == Kind::mapped)
            at = static_cast<unsigned char*>(
                mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        else
            at = static_cast<unsigned char*>(std::malloc(bytes)), kind_ = Kind::heap;
        std::memset(at, 0x5A, bytes);
    }
    ~Memory() {
        if (kind_ == Kind::heap) std::free(at);
        if (kind_ == Kind::mapped) munmap(at, bytes_);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    unsigned char* at;

  private:
    Kind kind_;
    std::size_t bytes_;
};

int value(int seed, int sender, int receiver, int index) {
    return seed * 7919 + sender * 104729 + receiver * 1299709 + index;
}

std::vector<int> values(int seed, int sender, int receiver, int ints) {
    std::vector<int> made;
    for (int i = 0; i < ints; ++i) made.push_back(value(seed, sender, receiver, i));
    return made;
}

// Lays out blocks one after the other. Returns: their displacements in bytes, and how much they need
// together.
std::size_t lay_out(Random& random, const std::vector<Block>& blocks, std::vector<int>& displacements) {
    MPI_Aint at = 64 + 4 * pick(random, 0, 500);
    for (const Block& block : blocks) {
        displacements.push_back(static_cast<int>(at - block.true_lower));
        at += block.span + 4 * pick(random, 0, 20);
    }
    return static_cast<std::size_t>(at) + 64;
}

// `count` elements of the block's type that start at `to`, as MPI_Unpack puts the ints there.
void put(const Block& block, const std::vector<int>& from, unsigned char* to) {
    int position = 0;
    MPI_Unpack(from.data(), static_cast<int>(from.size() * sizeof(int)), &position, to, block.count,
               block.type, MPI_COMM_WORLD);
}

// Every rank is everyone's neighbour, in the order of ranks, so that calls on neighbours do the same as those
// among all.
MPI_Comm all_neighbors() {
    static const MPI_Comm comm = [] {
        std::vector<int> all;
        for (int r = 0; r < world_size(); ++r) all.push_back(r);
        MPI_Comm made;
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, world_size(), all.data(), MPI_UNWEIGHTED, world_size(),
                                       all.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
        test::open_comm(made);
        return made;
    }();
    return comm;
}

enum class Among { all, all_in_place, neighbors };

// A type whose elements lie backwards has bytes below its first element: its true lower bound is negative.
void alltoallw(int seed, Among among) {
    const bool in_place = among == Among::all_in_place;
    Random random(static_cast<unsigned>(seed * 1000 + world_rank()));
    const int ranks = world_size();
    const int base = 1 << pick(random, 0, 0), unit = 4096 << (seed % 3);
    auto ints_of = [&](int a, int b) { return base * unit * (1 + (a + b + seed) % 3); };
    std::vector<Block> sends, recvs;
    for (int r = 0; r < ranks; ++r) {
        recvs.push_back(some(random, ints_of(world_rank(), r)));
        sends.push_back(in_place ? recvs.back() : some(random, ints_of(world_rank(), r)));
    }
    std::vector<int> send_at, recv_at, send_counts, recv_counts;
    std::vector<MPI_Datatype> send_types, recv_types;
    const std::size_t recv_bytes = lay_out(random, recvs, recv_at);
    const std::size_t send_bytes = lay_out(random, sends, send_at);
    const auto kind = [&] { return static_cast<Kind>(pick(random, 0, static_cast<int>(Kind::count) - 1)); };
    Memory send(kind(), send_bytes, 0), recv(kind(), recv_bytes, 1), wanted(Kind::heap, recv_bytes, 0);
    for (int r = 0; r < ranks; ++r) {
        const auto at = static_cast<std::size_t>(r);
        send_counts.push_back(sends[at].count), send_types.push_back(sends[at].type);
        recv_counts.push_back(recvs[at].count), recv_types.push_back(recvs[at].type);
        const std::vector<int> out = values(seed, world_rank(), r, ints_of(world_rank(), r));
        put(sends[at], out, in_place ? recv.at + recv_at[at] : send.at + send_at[at]);
        put(recvs[at], values(seed, r, world_rank(), ints_of(r, world_rank())), wanted.at + recv_at[at]);
    }
    if (in_place)
        MPI_Alltoallw(MPI_IN_PLACE, nullptr, nullptr, nullptr, recv.at, recv_counts.data(), recv_at.data(),
                      recv_types.data(), MPI_COMM_WORLD);
    else if (among == Among::all)
        MPI_Alltoallw(send.at, send_counts.data(), send_at.data(), send_types.data(), recv.at,
                      recv_counts.data(), recv_at.data(), recv_types.data(), MPI_COMM_WORLD);
    else
        MPI_Neighbor_alltoallw(
            send.at, send_counts.data(), std::vector<MPI_Aint>(send_at.begin(), send_at.end()).data(),
            send_types.data(), recv.at, recv_counts.data(),
            std::vector<MPI_Aint>(recv_at.begin(), recv_at.end()).data(), recv_types.data(), all_neighbors());
    CHECK(std::memcmp(recv.at, wanted.at, recv_bytes) == 0);
    for (Block& block : recvs) MPI_Type_free(&block.type);
    if (!in_place)
        for (Block& block : sends) MPI_Type_free(&block.type);
}

// One type for all blocks of a side. gathers: one block goes to all ranks.
void plain(int seed, bool gathers, bool sized, bool among_neighbors) {
    Random random(static_cast<unsigned>(seed * 1000 + world_rank()));
    const int ranks = world_size(), ints = 8192 << (seed % 3), sent = gathers ? 1 : ranks;
    Block send_block = some(random, ints), recv_block = some(random, ints);
    auto step_of = [](const Block& block) {
        MPI_Aint lower, extent;
        MPI_Type_get_extent(block.type, &lower, &extent);
        return extent * block.count;
    };
    // Blocks of such types may lie in one another in plain forms; only those that do not are received.
    while (std::labs(step_of(recv_block)) < recv_block.span) {
        MPI_Type_free(&recv_block.type);
        recv_block = some(random, ints);
    }
    auto room = [&](const Block& block, int blocks) {
        return static_cast<std::size_t>(std::labs(step_of(block)) * blocks + 2 * block.span +
                                        std::labs(block.true_lower));
    };
    const auto kind = [&] { return static_cast<Kind>(pick(random, 0, static_cast<int>(Kind::count) - 1)); };
    const std::size_t send_bytes = room(send_block, sent), recv_bytes = room(recv_block, ranks);
    Memory send(kind(), 2 * send_bytes, 0), recv(kind(), 2 * recv_bytes, 1),
        wanted(Kind::heap, 2 * recv_bytes, 0);
    for (int r = 0; r < sent; ++r)
        put(send_block, values(seed, world_rank(), gathers ? 0 : r, ints),
            send.at + send_bytes + r * step_of(send_block));
    for (int r = 0; r < ranks; ++r)
        put(recv_block, values(seed, r, gathers ? 0 : world_rank(), ints),
            wanted.at + recv_bytes + r * step_of(recv_block));
    // What a block that lies over another one has overwritten is sent so, too: those are not compared.
    const bool overlapping = sent > 1 && std::labs(step_of(send_block)) < send_block.span;
    std::vector<int> send_counts(static_cast<std::size_t>(ranks), send_block.count),
        recv_counts(static_cast<std::size_t>(ranks), recv_block.count);
    std::vector<int> send_at, recv_at;
    for (int r = 0; r < ranks; ++r)
        send_at.push_back(r * send_block.count), recv_at.push_back(r * recv_block.count);
    unsigned char *from = send.at + send_bytes, *to = recv.at + recv_bytes;
    if (among_neighbors && gathers && sized)
        MPI_Neighbor_allgatherv(from, send_block.count, send_block.type, to, recv_counts.data(),
                                recv_at.data(), recv_block.type, all_neighbors());
    else if (among_neighbors && gathers)
        MPI_Neighbor_allgather(from, send_block.count, send_block.type, to, recv_block.count, recv_block.type,
                               all_neighbors());
    else if (among_neighbors && sized)
        MPI_Neighbor_alltoallv(from, send_counts.data(), send_at.data(), send_block.type, to,
                               recv_counts.data(), recv_at.data(), recv_block.type, all_neighbors());
    else if (among_neighbors)
        MPI_Neighbor_alltoall(from, send_block.count, send_block.type, to, recv_block.count, recv_block.type,
                              all_neighbors());
    else if (gathers && sized)
        MPI_Allgatherv(from, send_block.count, send_block.type, to, recv_counts.data(), recv_at.data(),
                       recv_block.type, MPI_COMM_WORLD);
    else if (gathers)
        MPI_Allgather(from, send_block.count, send_block.type, to, recv_block.count, recv_block.type,
                      MPI_COMM_WORLD);
    else if (sized)
        MPI_Alltoallv(from, send_counts.data(), send_at.data(), send_block.type, to, recv_counts.data(),
                      recv_at.data(), recv_block.type, MPI_COMM_WORLD);
    else
        MPI_Alltoall(from, send_block.count, send_block.type, to, recv_block.count, recv_block.type,
                     MPI_COMM_WORLD);
    int any_overlapping = overlapping;
    MPI_Allreduce(MPI_IN_PLACE, &any_overlapping, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any_overlapping == 0) CHECK(std::memcmp(recv.at, wanted.at, 2 * recv_bytes) == 0);
    MPI_Type_free(&send_block.type);
    MPI_Type_free(&recv_block.type);
}

// Every rank has another type.
void bcast(int seed) {
    Random random(static_cast<unsigned>(seed * 1000 + world_rank()));
    const int ints = 8192 << (seed % 9), root = seed % world_size();
    Block block = some(random, ints);
    const auto start = static_cast<std::size_t>(std::labs(block.true_lower) + 64),
               bytes = start + static_cast<std::size_t>(2 * block.span) + 64;
    Memory memory(static_cast<Kind>(pick(random, 0, static_cast<int>(Kind::count) - 1)), bytes, 0),
        wanted(Kind::heap, bytes, 0);
    put(block, values(seed, root, 0, ints), wanted.at + start);
    if (world_rank() == root) put(block, values(seed, root, 0, ints), memory.at + start);
    MPI_Bcast(memory.at + start, block.count, block.type, root, MPI_COMM_WORLD);
    CHECK(std::memcmp(memory.at, wanted.at, bytes) == 0);
    MPI_Type_free(&block.type);
}

// What all ranks send of a type, so that each knows what comes: one block for each rank, and this rank's
// block packed.
struct Sent {
    Sent(const test::Type& type, int units) : count(units / type.units) {
        MPI_Aint lower, extent;
        MPI_Type_get_extent(type.handle, &lower, &extent);
        const auto step = static_cast<std::size_t>(extent * count + 4096);
        data.resize(static_cast<std::size_t>(world_size()) * step);
        for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 7 + (i >> 8));
        for (int r = 0; r < world_size(); ++r)
            at.push_back(static_cast<int>(static_cast<std::size_t>(r) * step + 2048));
        int size = 0;
        MPI_Pack_size(count, type.handle, MPI_COMM_WORLD, &size);
        packed.resize(static_cast<std::size_t>(size));
        MPI_Pack(&data[static_cast<std::size_t>(at[static_cast<std::size_t>(world_rank())])], count,
                 type.handle, packed.data(), size, &packed_bytes, MPI_COMM_WORLD);
    }
    int count, packed_bytes = 0;
    std::vector<unsigned char> data, packed;
    std::vector<int> at;
};

// Each type of the other tests to each that can be received, in one block for each rank.
void every_pair(const test::Family& family) {
    const auto ranks = static_cast<std::size_t>(world_size());
    const int units = 60'000 / family.unit_bytes / family.multiple * family.multiple;
    for (const test::Type& out : family.types) {
        const Sent send(out, units);
        const std::vector<int> send_counts(ranks, send.count);
        const std::vector<MPI_Datatype> send_types(ranks, out.handle);
        for (const test::Type& in : family.types) {
            if (!in.receives) continue;
            MPI_Aint lower, extent;
            MPI_Type_get_extent(in.handle, &lower, &extent);
            const int count = units / in.units;
            const auto step = static_cast<std::size_t>(extent * count + 4096);
            std::vector<unsigned char> recv(ranks * step, 0x5A), wanted(recv);
            std::vector<int> recv_at;
            for (std::size_t r = 0; r < ranks; ++r) recv_at.push_back(static_cast<int>(r * step + 2048));
            const std::vector<int> recv_counts(ranks, count);
            const std::vector<MPI_Datatype> recv_types(ranks, in.handle);
            int at = 0;
            MPI_Unpack(send.packed.data(), send.packed_bytes, &at, &wanted[2048], count, in.handle,
                       MPI_COMM_WORLD);
            for (std::size_t r = 1; r < ranks; ++r)
                std::memcpy(&wanted[r * step], wanted.data(), step);  // as all ranks send the same
            MPI_Alltoallw(send.data.data(), send_counts.data(), send.at.data(), send_types.data(),
                          recv.data(), recv_counts.data(), recv_at.data(), recv_types.data(), MPI_COMM_WORLD);
            CHECK_SAYING(recv == wanted, (std::string(out.name) + " to " + in.name).c_str());
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 12;
    for (int seed = 0; seed < rounds; ++seed) {
        for (Among among : {Among::all, Among::all_in_place, Among::neighbors}) alltoallw(seed, among);
        for (bool gathers : {false, true})
            for (bool sized : {false, true})
                for (bool among_neighbors : {false, true}) plain(seed, gathers, sized, among_neighbors);
        for (int root = 0; root < 3; ++root) bcast(3 * seed + root);
    }
    for (const test::Family& family :
         {test::int_family(), test::double_int_family(), test::byte_family(), test::double_family()})
        every_pair(family);
    const int status = test::finish("layouts_test");
    MPI_Finalize();
    return status;
}
