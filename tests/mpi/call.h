// SPDX-License-Identifier: BSD-3-Clause
//
// One collective call as data, and its proof: the call is made twice on the same memory with the same
// contents, once as programs do and once through the MPI library's own function; every byte of both buffers
// must end alike: data, holes, and guards before and after; of long doubles only what holds the value.
// Every rank of the communicator verifies the same call.
#pragma once
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cfloat>
#include <cstdio>
#include <cstring>
#include <vector>

#include "memory.h"
#include "plain_mpi.h"
#include "support/check.h"

namespace test {

enum class Kind { alltoall, alltoallv, alltoallw, allgather, allgatherv, bcast };
inline constexpr int kKinds = 6;
inline const char* name_of(Kind kind) {
    constexpr const char* kNames[] = {"alltoall",  "alltoallv",  "alltoallw",
                                      "allgather", "allgatherv", "bcast"};
    return kNames[static_cast<int>(kind)];
}

// One buffer's blocks. Plain forms use the first entries and no displacements; the w form one type per rank,
// with displacements in bytes; the v forms the first type, with displacements in extents.
struct Side {
    std::vector<MPI_Datatype> types;
    std::vector<int> counts;
    std::vector<int> displacements;
};

struct Call {
    Kind kind = Kind::alltoall;
    bool neighbor = false;  // MPI_Neighbor_...; not of bcast
    MPI_Comm comm = MPI_COMM_WORLD;
    int root = 0;
    bool in_place = false;
    bool large = false;           // the _c form, where the MPI has it
    bool fortran = false;         // by Fortran's name; not in place, not with `large`
    bool null_when_empty = true;  // a buffer without bytes is passed as NULL
    Side send, recv;              // bcast: recv only
    Placement send_at = Placement::heap, recv_at = Placement::heap;
    std::uint64_t seed = 0;  // of the contents; another one on each rank
};

struct Span {
    MPI_Aint low = 0, high = 0;
    void cover(MPI_Aint from, MPI_Aint to) {
        if (low == high) low = from, high = to;
        low = std::min(low, from), high = std::max(high, to);
    }
};

// The ranks on the other side: the group itself, the remote group of an intercommunicator.
inline int peers_of(MPI_Comm comm) {
    int inter = 0, size = 0;
    MPI_Comm_test_inter(comm, &inter);
    if (inter)
        MPI_Comm_remote_size(comm, &size);
    else
        MPI_Comm_size(comm, &size);
    return size;
}

// The neighbours of this rank in a communicator with a topology; MPI_PROC_NULL for nobody.
struct NeighborLists {
    std::vector<int> sources, destinations;
};
inline NeighborLists neighbors_of(MPI_Comm comm) {
    NeighborLists lists;
    int kind = MPI_UNDEFINED, rank = 0, count = 0, more = 0, weighted = 0;
    MPI_Topo_test(comm, &kind);
    MPI_Comm_rank(comm, &rank);
    if (kind == MPI_CART) {
        MPI_Cartdim_get(comm, &count);
        for (int d = 0; d < count; ++d) {
            int before = MPI_PROC_NULL, behind = MPI_PROC_NULL;
            MPI_Cart_shift(comm, d, 1, &before, &behind);
            lists.sources.insert(lists.sources.end(), {before, behind});
        }
        lists.destinations = lists.sources;
    } else if (kind == MPI_GRAPH) {
        MPI_Graph_neighbors_count(comm, rank, &count);
        lists.sources.resize(static_cast<std::size_t>(count));
        MPI_Graph_neighbors(comm, rank, count, lists.sources.data());
        lists.destinations = lists.sources;
    } else if (kind == MPI_DIST_GRAPH) {
        MPI_Dist_graph_neighbors_count(comm, &count, &more, &weighted);
        lists.sources.resize(static_cast<std::size_t>(count));
        lists.destinations.resize(static_cast<std::size_t>(more));
        std::vector<int> source_weights(lists.sources.size()), weights(lists.destinations.size());
        MPI_Dist_graph_neighbors(comm, count, lists.sources.data(), source_weights.data(), more,
                                 lists.destinations.data(), weights.data());
    }
    return lists;
}

// Blocks that this rank sends and receives.
struct Blocks {
    int sent, received;
};
inline Blocks blocks_of(const Call& c) {
    const bool gathers = c.kind == Kind::allgather || c.kind == Kind::allgatherv;
    Blocks blocks{peers_of(c.comm), peers_of(c.comm)};
    if (c.neighbor) {
        const NeighborLists lists = neighbors_of(c.comm);
        blocks = {static_cast<int>(lists.destinations.size()), static_cast<int>(lists.sources.size())};
    }
    if (gathers) blocks.sent = 1;
    return c.kind == Kind::bcast ? Blocks{0, 1} : blocks;
}

// The bytes that `blocks` blocks of a side touch, relative to the buffer's address.
inline Span span_of(const Side& side, int blocks) {
    Span span;
    for (int b = 0; b < blocks; ++b) {
        const auto i = static_cast<std::size_t>(b);
        const bool uniform = side.displacements.empty();
        const int count = uniform ? side.counts[0] : side.counts[i];
        MPI_Datatype type = side.types.size() == 1 ? side.types[0] : side.types[i];
        MPI_Aint lower, extent, true_lower, true_extent;
        MPI_Type_get_extent(type, &lower, &extent);
        MPI_Type_get_true_extent(type, &true_lower, &true_extent);
        if (count == 0) continue;
        MPI_Aint at =
            uniform ? b * count * extent : side.displacements[i] * (side.types.size() == 1 ? extent : 1);
        for (MPI_Aint element : {MPI_Aint{0}, MPI_Aint{count} - 1}) {
            MPI_Aint first = at + element * extent + true_lower;
            span.cover(first, first + true_extent);
        }
    }
    return span;
}

#if MPI_VERSION >= 4
inline std::vector<MPI_Count> wide_counts(const std::vector<int>& v) { return {v.begin(), v.end()}; }
inline std::vector<MPI_Aint> wide_places(const std::vector<int>& v) { return {v.begin(), v.end()}; }

inline int invoke_large(const Functions& f, const Call& c, const void* from, void* to) {
    auto sc = wide_counts(c.send.counts), rc = wide_counts(c.recv.counts);
    auto sd = wide_places(c.send.displacements), rd = wide_places(c.recv.displacements);
    MPI_Datatype st = c.send.types.empty() ? MPI_DATATYPE_NULL : c.send.types[0], rt = c.recv.types[0];
    MPI_Count n = sc.empty() ? 0 : sc[0];
    switch (c.kind) {
        case Kind::alltoall:
            return (c.neighbor ? f.Neighbor_alltoall_c : f.Alltoall_c)(from, n, st, to, rc[0], rt, c.comm);
        case Kind::alltoallv:
            return (c.neighbor ? f.Neighbor_alltoallv_c : f.Alltoallv_c)(from, sc.data(), sd.data(), st, to,
                                                                         rc.data(), rd.data(), rt, c.comm);
        case Kind::alltoallw:
            return (c.neighbor ? f.Neighbor_alltoallw_c : f.Alltoallw_c)(
                from, sc.data(), sd.data(), c.send.types.data(), to, rc.data(), rd.data(),
                c.recv.types.data(), c.comm);
        case Kind::allgather:
            return (c.neighbor ? f.Neighbor_allgather_c : f.Allgather_c)(from, n, st, to, rc[0], rt, c.comm);
        case Kind::allgatherv:
            return (c.neighbor ? f.Neighbor_allgatherv_c : f.Allgatherv_c)(from, n, st, to, rc.data(),
                                                                           rd.data(), rt, c.comm);
        case Kind::bcast:
            return f.Bcast_c(to, rc[0], rt, c.root, c.comm);
    }
    return MPI_ERR_OTHER;
}
#endif

// Its displacements are addresses.
inline int invoke_neighbor_w(const Functions& f, const Call& c, const void* from, void* to) {
    const Side &s = c.send, &r = c.recv;
    const std::vector<MPI_Aint> send_at(s.displacements.begin(), s.displacements.end()),
        recv_at(r.displacements.begin(), r.displacements.end());
    return f.Neighbor_alltoallw(from, s.counts.data(), send_at.data(), s.types.data(), to, r.counts.data(),
                                recv_at.data(), r.types.data(), c.comm);
}

// How calls by Fortran's names are made, if the test has asked for it (fortran_calls.h).
inline int (*invoke_fortran)(const Call& c, const void* from, void* to) = nullptr;

inline int invoke(const Functions& f, const Call& c, const void* from, void* to) {
#if MPI_VERSION >= 4
    if (c.large) return invoke_large(f, c, from, to);
#endif
    const Side &s = c.send, &r = c.recv;
    MPI_Datatype st = s.types.empty() ? MPI_DATATYPE_NULL : s.types[0], rt = r.types[0];
    int n = s.counts.empty() ? 0 : s.counts[0];
    switch (c.kind) {
        case Kind::alltoall:
            return (c.neighbor ? f.Neighbor_alltoall : f.Alltoall)(from, n, st, to, r.counts[0], rt, c.comm);
        case Kind::alltoallv:
            return (c.neighbor ? f.Neighbor_alltoallv : f.Alltoallv)(
                from, s.counts.data(), s.displacements.data(), st, to, r.counts.data(),
                r.displacements.data(), rt, c.comm);
        case Kind::alltoallw:
            if (c.neighbor) return invoke_neighbor_w(f, c, from, to);
            return f.Alltoallw(from, s.counts.data(), s.displacements.data(), s.types.data(), to,
                               r.counts.data(), r.displacements.data(), r.types.data(), c.comm);
        case Kind::allgather:
            return (c.neighbor ? f.Neighbor_allgather : f.Allgather)(from, n, st, to, r.counts[0], rt,
                                                                     c.comm);
        case Kind::allgatherv:
            return (c.neighbor ? f.Neighbor_allgatherv : f.Allgatherv)(from, n, st, to, r.counts.data(),
                                                                       r.displacements.data(), rt, c.comm);
        case Kind::bcast:
            return f.Bcast(to, r.counts[0], rt, c.root, c.comm);
    }
    return MPI_ERR_OTHER;
}

// A buffer between guards: `address` is what MPI gets, the region what is compared.
struct Guarded {
    static constexpr MPI_Aint kGuardBytes = 64;
    Guarded(Placement placement, Span s, bool null_when_empty)
        : span(s), region(placement, static_cast<std::size_t>(round(s.high - s.low) + 2 * kGuardBytes + 64)) {
        const MPI_Aint shift = ((-span.low) % 64 + 64) % 64;  // the address itself stays aligned
        address = span.low == span.high && null_when_empty
                      ? nullptr
                      : reinterpret_cast<char*>(reinterpret_cast<MPI_Aint>(region.data()) + kGuardBytes +
                                                (64 - shift) % 64 - span.low);
    }
    static MPI_Aint round(MPI_Aint bytes) { return (bytes + 63) / 64 * 64; }

    Span span;
    Region region;
    char* address;
};

inline void describe(const Call& c, const char* what, std::size_t at) {
    int rank = 0, size = 0;
    MPI_Comm_rank(c.comm, &rank);
    MPI_Comm_size(c.comm, &size);
    int send_bytes = 0, recv_bytes = 0;
    if (!c.send.types.empty()) MPI_Type_size(c.send.types[0], &send_bytes);
    MPI_Type_size(c.recv.types[0], &recv_bytes);
    std::fprintf(
        stderr,
        "%s%s%s, %d of %d ranks, root %d, in place %d, send %d x %d bytes (place %d), receive %d x %d bytes "
        "(place %d), seed %llu: %s at byte %zu\n",
        c.neighbor ? "neighbor_" : "", name_of(c.kind), c.large ? "_c" : "", rank, size, c.root, c.in_place,
        c.send.counts.empty() ? 0 : c.send.counts[0], send_bytes, static_cast<int>(c.send_at),
        c.recv.counts.empty() ? 0 : c.recv.counts[0], recv_bytes, static_cast<int>(c.recv_at),
        static_cast<unsigned long long>(c.seed), what, at);
}

inline std::size_t difference(const char* a, const char* b, std::size_t bytes) {
    return bytes == 0 || std::memcmp(a, b, bytes) == 0
               ? bytes
               : static_cast<std::size_t>(std::mismatch(a, a + bytes, b).first - a);
}

// Makes the bytes of long doubles that hold no value zero: those after the first ten of sixteen on x86. MPICH
// 4.0's alltoall of small blocks on 16 ranks and more leaves them as they were.
inline void forget_padding(const Call& c, char* buffer, std::size_t bytes) {
    constexpr std::size_t kItem = sizeof(long double), kValue = LDBL_MANT_DIG == 64 ? 10 : kItem;
    if (c.recv.types[0] != MPI_LONG_DOUBLE) return;
    for (std::size_t item = 0; item + kItem <= bytes; item += kItem)
        std::fill(buffer + item + kValue, buffer + item + kItem, 0);
}

// Bytes that later calls of the thread use again: the kernel would take long to give fresh pages for each
// call.
class Kept {
  public:
    char* of(std::size_t bytes) {
        if (bytes_.size() < bytes) bytes_ = std::vector<char>(bytes);
        return bytes_.data();
    }

  private:
    std::vector<char> bytes_;
};

// Calls so far, among neighbours or not, by kind.
inline std::atomic<std::uint64_t> verified[2][kKinds] = {};

// Returns: whether both editions did the same. Counts a failure and describes the call otherwise.
inline bool verify(const Call& c) {
    static const Functions called = called_functions(), own = library_functions();
    const Blocks blocks = blocks_of(c);
    const bool has_send = c.kind != Kind::bcast && !c.in_place;
    Guarded send(c.send_at, has_send ? span_of(c.send, blocks.sent) : Span{}, c.null_when_empty);
    Guarded recv(c.recv_at, span_of(c.recv, blocks.received), c.null_when_empty);
    const std::size_t send_bytes = send.region.bytes(), recv_bytes = recv.region.bytes();

    static thread_local Kept kept[3];
    char *const sent = kept[0].of(send_bytes), *const before = kept[1].of(recv_bytes);
    char *const result = kept[2].of(recv_bytes), *const own_result = recv.region.data();
    fill(sent, send_bytes, c.seed);
    fill(before, recv_bytes, c.seed + 1);
    const void* from = c.in_place ? MPI_IN_PLACE : send.address;
    auto call = [&](const Functions& f, bool fortran) {
        std::memcpy(send.region.data(), sent, send_bytes);
        std::memcpy(recv.region.data(), before, recv_bytes);
        return fortran ? invoke_fortran(c, from, recv.address) : invoke(f, c, from, recv.address);
    };
    ++verified[c.neighbor][static_cast<int>(c.kind)];
    const int code = call(called, c.fortran);
    std::memcpy(result, recv.region.data(), recv_bytes);
    const std::size_t send_change = difference(sent, send.region.data(), send_bytes);
    const int own_code = call(own, false);
    forget_padding(c, result, recv_bytes);
    forget_padding(c, own_result, recv_bytes);
    const std::size_t change = difference(result, own_result, recv_bytes);

    if (code != own_code) describe(c, "another return code", 0);
    if (send_change != send_bytes) describe(c, "send buffer changed", send_change);
    if (change != recv_bytes) describe(c, "receive buffer differs", change);
    const bool good = code == own_code && send_change == send_bytes && change == recv_bytes;
    if (!good) ++failures;
    return good;
}

// Calls enough for a communicator to have shown that it is used again: from then on it is ours.
inline void warm_up(MPI_Comm comm) {
    constexpr int kLarge = 8192;  // a block of so many ints opens a communicator at once
    for (int i = 0; i < 8; ++i) {
        Call c;
        c.comm = comm;
        c.send = c.recv = {{MPI_INT}, {i == 0 ? kLarge : 1}, {}};
        verify(c);
    }
}

}  // namespace test
