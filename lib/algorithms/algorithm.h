// SPDX-License-Identifier: BSD-3-Clause
//
// An algorithm is a pure function from a shape to the schedule of one rank. Its row in the registry has the
// facts by which policy and exec handle it without knowing its name. Each algorithm has a file; registry.cc
// has the rows.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/collectives.h"
#include "schedule/bundles.h"
#include "schedule/combining.h"
#include "schedule/edges.h"
#include "schedule/schedule.h"
#include "topology/node_map.h"

namespace coco::algorithms {

// Names from the table of collectives, for policy and exec, which use them beside algorithms.
using base::Collective;
using base::CollectiveSet;
using base::Exchange;
using base::kCollectives;
using base::set_of;

// The parameters that may follow an algorithm's name: bruck:radix=4, leader:bruck,radix=4. Each row of the
// registry says which parameters the algorithm takes; the others keep their defaults.
enum class Inner : std::uint8_t { pairwise, bruck, multinode_morton };
inline constexpr int kInners = 3;
std::string_view name_of(Inner inner);
std::optional<Inner> inner_of(std::string_view name);
// The way of a bcast between nodes. `cheapest` is the tree or the chain, whichever sends less one after the
// other.
enum class Route : std::uint8_t { cheapest, tree, chain, scatter };
inline constexpr int kRoutes = 4;
std::string_view name_of(Route route);
std::optional<Route> route_of(std::string_view name);

struct Parameters {
    std::uint64_t segment_bytes = 0;  // segment=: bytes of a bcast's segment; 0: chosen by the caches
    std::int32_t radix = 2;           // radix=: the base of Bruck's digits, or of a bcast's tree; 2 or more
    std::int32_t leaders = 0;       // leaders=: of each node; 0: one in leader and sloavx, else all its ranks
    Inner inner = Inner::pairwise;  // a bare word: the exchange among leaders
    Route route = Route::cheapest;  // route=: the way of a bcast between nodes
    std::int32_t threshold = 0;     // threshold=: how many common neighbours make ranks combine; 0: 4
    std::int32_t depth = 1;  // depth=: how often what goes to one neighbour may be combined; 0: any number
    // window=: how many messages of a rank are under way at once each way; 0: the algorithm's usual number
    std::int32_t window = 0;
    std::int32_t width = 8;  // width=: how many ranks copy for one another; 1 or more
    friend bool operator==(const Parameters&, const Parameters&) = default;
};
enum class Parameter : std::uint8_t {
    segment,
    radix,
    leaders,
    inner,
    route,
    threshold,
    depth,
    window,
    width
};
using ParameterSet = std::uint32_t;
constexpr ParameterSet set_of(Parameter p) { return ParameterSet{1} << static_cast<int>(p); }
// The text that a user would write for these parameters, without defaults: ":bruck,radix=4", or nothing.
std::string text_of(const Parameters& parameters);

// All that a schedule depends on.
struct Shape {
    Exchange exchange;
    std::int32_t rank;
    const topology::NodeMap* map;
    std::int32_t root = 0;      // bcast
    std::int32_t segments = 1;  // bcast: into how many segments the buffer is cut; 1 to kDone - 1
    Parameters parameters = {};
    // neighbor_*: what this rank knows of the process topology, and its share of the copies within its node
    // (see Algorithm::cut). Null for other exchanges.
    const schedule::Neighborhood* neighborhood = nullptr;
    const schedule::EdgeShare* share = nullptr;
    // aggregate: the bundles between nodes that carry this rank's edges. Null for other algorithms.
    const schedule::Bundles* bundles = nullptr;
    // combining: how this rank's messages to and from other nodes are combined; null: not at all. What a rank
    // sends and what it receives may have different block sizes, so one may be combined and the other not.
    const schedule::CombinedSends* combined_sends = nullptr;
    const schedule::CombinedReceives* combined_receives = nullptr;
};

inline constexpr CollectiveSet kAlltoalls = base::collectives_that(
    [](const auto& row) { return row.exchange == Exchange::alltoall && !row.neighbor; });
inline constexpr CollectiveSet kAllgathers = base::collectives_that(
    [](const auto& row) { return row.exchange == Exchange::allgather && !row.neighbor; });
inline constexpr CollectiveSet kNeighbors =
    base::collectives_that([](const auto& row) { return row.neighbor; });

// How exec runs an algorithm.
enum class Executor : std::uint8_t {
    // On one node:
    pull,     // every rank reads its blocks from their senders' buffers and writes its own
    share,    // ranks copy for each other, from senders' buffers to receivers' buffers
    scratch,  // blocks go through shared scratch in one piece: any buffer will do
    ring,     // a bcast's segments go through a ring in the root's scratch
    // On several nodes (blocks of neighbours also move within nodes):
    messages,  // messages of whole blocks, and scratch that the ranks of a node share
    bundles,   // neighbours: what a node owes another goes in bundles (Shape::bundles)
    combined,  // neighbours: as `scratch` within nodes; messages between nodes are combined (combined_sends)
};

struct Algorithm {
    std::string_view name;     // policy word = file stem = test tag = heading in docs
    std::string_view summary;  // one line, for coco info and docs
    std::string_view source;   // paper and section
    CollectiveSet collectives;
    Executor executor;
    bool segmented;           // bcast: the executor chooses Shape::segments by size; others always get 1
    ParameterSet parameters;  // the parameters that it takes
    schedule::Cut cut;        // neighbor_*: which rank copies which edges within a node
    schedule::Schedule (*make_schedule)(const Shape& shape);

    // Whether the algorithm is for ranks on one node; else it is for several nodes, by messages.
    constexpr bool one_node() const { return executor <= Executor::ring; }
    // Whether some rank reads another's send area, or writes another's recv area. Such an area must be on the
    // shared heap, or staged.
    constexpr bool reads_peer_send() const {
        return executor == Executor::pull || executor == Executor::share;
    }
    constexpr bool writes_peer_recv() const { return executor == Executor::share; }
    constexpr bool is_eager() const { return executor == Executor::scratch; }
    constexpr bool needs_bundles() const { return executor == Executor::bundles; }
    constexpr bool combines() const { return executor == Executor::combined; }
    // A number of 16 bits that is different for each row, for slots; never 0.
    constexpr std::uint16_t mark() const {
        std::uint32_t hash = 0x811c9dc5u;  // FNV-1a, folded
        for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193u;
        return static_cast<std::uint16_t>((hash >> 16 ^ hash) | 1);
    }
};

// The table; one row for each algorithm. `mpi`, the PMPI function, is not in it.
std::span<const Algorithm> registry();
// The first row that serves this collective and is run in this way. Requires: there is one.
const Algorithm& row_for(Collective collective, Executor executor);
// Returns: null if there is none of that name.
const Algorithm* find(std::string_view name);
inline bool serves(const Algorithm& a, Collective c) { return (a.collectives & set_of(c)) != 0; }
inline bool takes(const Algorithm& a, Parameter p) { return (a.parameters & set_of(p)) != 0; }
// The same choice in its shortest form, so that equal choices compare equal and what is made for them is made
// once.
Parameters shortest(const Algorithm& algorithm, Parameters parameters);

}  // namespace coco::algorithms
