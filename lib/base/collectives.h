// SPDX-License-Identifier: BSD-3-Clause
//
// The collectives that libcoco takes: one row for each, with all that other rooms ask of a collective. A new
// one is a row here, a door (interpose/mpi_c.cc) and its sides (dispatch/side_args.cc). Thread safety:
// constants.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace coco::base {

// The number of a collective stands in reports and in the slots: new ones go to the end.
enum class Collective : std::uint8_t {
    alltoall,
    alltoallv,
    alltoallw,
    allgather,
    allgatherv,
    bcast,
    neighbor_alltoall,
    neighbor_alltoallv,
    neighbor_alltoallw,
    neighbor_allgather,
    neighbor_allgatherv
};

// The pattern: a block from each rank to each, one block of each rank to all, or the root's buffer to all.
// The v and w forms move the same blocks as their plain form, and collectives of neighbours the same among
// the ranks that a topology joins.
enum class Exchange : std::uint8_t { alltoall, allgather, bcast };
inline constexpr int kExchanges = 3;

struct CollectiveFacts {
    Collective collective;
    std::string_view
        name;              // the word of policy files and COCO_DISABLE; COCO_<UPPER CASE> forces an algorithm
    const char* function;  // MPI's name
    Exchange exchange;
    bool sized;     // v and w forms: blocks have sizes of their own
    bool typed;     // w forms: and types of their own
    bool neighbor;  // among the neighbours of a topology
};

inline constexpr CollectiveFacts kCollectiveTable[] = {
    {Collective::alltoall, "alltoall", "MPI_Alltoall", Exchange::alltoall, false, false, false},
    {Collective::alltoallv, "alltoallv", "MPI_Alltoallv", Exchange::alltoall, true, false, false},
    {Collective::alltoallw, "alltoallw", "MPI_Alltoallw", Exchange::alltoall, true, true, false},
    {Collective::allgather, "allgather", "MPI_Allgather", Exchange::allgather, false, false, false},
    {Collective::allgatherv, "allgatherv", "MPI_Allgatherv", Exchange::allgather, true, false, false},
    {Collective::bcast, "bcast", "MPI_Bcast", Exchange::bcast, false, false, false},
    {Collective::neighbor_alltoall, "neighbor_alltoall", "MPI_Neighbor_alltoall", Exchange::alltoall, false,
     false, true},
    {Collective::neighbor_alltoallv, "neighbor_alltoallv", "MPI_Neighbor_alltoallv", Exchange::alltoall, true,
     false, true},
    {Collective::neighbor_alltoallw, "neighbor_alltoallw", "MPI_Neighbor_alltoallw", Exchange::alltoall, true,
     true, true},
    {Collective::neighbor_allgather, "neighbor_allgather", "MPI_Neighbor_allgather", Exchange::allgather,
     false, false, true},
    {Collective::neighbor_allgatherv, "neighbor_allgatherv", "MPI_Neighbor_allgatherv", Exchange::allgather,
     true, false, true},
};
inline constexpr int kCollectives = sizeof kCollectiveTable / sizeof kCollectiveTable[0];

constexpr const CollectiveFacts& facts_of(Collective collective) {
    return kCollectiveTable[static_cast<int>(collective)];
}
constexpr bool is_sized(Collective collective) { return facts_of(collective).sized; }
constexpr bool is_neighbor(Collective collective) { return facts_of(collective).neighbor; }
constexpr bool is_rooted(Collective collective) { return facts_of(collective).exchange == Exchange::bcast; }
constexpr Exchange exchange_of(Collective collective) { return facts_of(collective).exchange; }
// Whether each rank sends a block of its own to each receiver.
constexpr bool is_personal(Collective collective) { return exchange_of(collective) == Exchange::alltoall; }
constexpr std::string_view name_of(Collective collective) { return facts_of(collective).name; }

constexpr std::optional<Collective> collective_of(std::string_view name) {
    for (const CollectiveFacts& row : kCollectiveTable)
        if (row.name == name) return row.collective;
    return std::nullopt;
}

namespace internal {
constexpr bool rows_are_in_order() {
    for (int i = 0; i < kCollectives; ++i)
        if (static_cast<int>(kCollectiveTable[i].collective) != i) return false;
    return true;
}
static_assert(rows_are_in_order(), "a row of the table of collectives is not at its enumerator's place");
}  // namespace internal

// A set of collectives: a bit for each.
using CollectiveSet = std::uint32_t;
constexpr CollectiveSet set_of(Collective c) { return CollectiveSet{1} << static_cast<int>(c); }
template <class Predicate>
constexpr CollectiveSet collectives_that(Predicate predicate) {
    CollectiveSet set = 0;
    for (const CollectiveFacts& row : kCollectiveTable)
        if (predicate(row)) set |= set_of(row.collective);
    return set;
}

}  // namespace coco::base
