// SPDX-License-Identifier: BSD-3-Clause
//
// The edges of a process topology: which block of which rank goes where, what one rank knows of them, and how
// those of a node are dealt to its ranks along a Morton curve. Called by algorithms, and by comm, which
// carries edges from rank to rank. No rank ever holds the whole graph. Thread safety: pure functions,
// immutable objects.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/order.h"
#include "topology/node_map.h"

namespace coco::schedule {

// One block's way: block `sent` of the sender becomes block `received` of the receiver. (In an allgather a
// sender's blocks are one and the same.) Several edges may join two ranks, and a rank with itself.
struct Edge {
    std::int32_t sender;
    std::int32_t receiver;
    std::int32_t sent;
    std::int32_t received;
    friend bool operator==(const Edge&, const Edge&) = default;
};

// What one rank knows of a neighbourhood.
struct Neighborhood {
    std::vector<std::int32_t> destinations;  // by block: the rank that it goes to; below 0: to nobody
    std::int32_t recv_blocks = 0;            // some may come from nobody
    std::vector<Edge> incoming;              // by (sender, sent): the order in which a sender's messages come

    std::int32_t send_blocks() const { return static_cast<std::int32_t>(destinations.size()); }
    // Of one sender, in the order of its blocks.
    std::span<const Edge> incoming_from(std::int32_t sender) const;
    friend bool operator==(const Neighborhood&, const Neighborhood&) = default;
};

// Who copies the edges within a node.
enum class Cut : std::uint8_t {
    own,            // the receiver
    curve,          // all ranks of the node, equal shares of the curve over all pairs of its ranks
    domain_curves,  // the ranks of the receiver's domain, one domain of senders after the other
};

// What one rank does of the edges within its node.
struct EdgeShare {
    std::vector<Edge> edges;             // that it copies, in this order
    std::vector<std::int32_t> touching;  // the other ranks that copy from or to its buffers
    friend bool operator==(const EdgeShare&, const EdgeShare&) = default;
};

// Cut::own: a rank's own incoming edges, its own blocks first, then nearest domain first.
EdgeShare own_share(const topology::NodeMap& map, std::int32_t rank, const Neighborhood& neighborhood);

// An edge on its curve. Travels between ranks as bytes.
struct CurveEdge {
    Edge edge;
    std::int32_t step;  // the curve: of the pair (receiver's domain, the domain so many places after it)
    std::uint32_t unused;
    std::int64_t position;  // on it
    std::uint64_t weight;   // what its copy costs
};

// Cuts the curves of a node (Cut::domain_curves: of the pairs with its receivers' domain) in shares of equal
// weight, together with the other ranks there: each rank places its incoming edges and gives them to those
// who gather that stretch of the curve, as if all pairs were edges; they sort them, all tell all the weight
// that they have, and then each knows which copier every edge of its stretch belongs to.
class CurveCut {
  public:
    // Requires: cut is not own.
    CurveCut(const topology::NodeMap& map, Cut cut, std::int32_t rank);

    // How many curves there are: the most that any node has.
    std::int32_t steps() const { return steps_; }
    // Requires (both): the edge ends at this rank and begins on its node.
    CurveEdge place(const Edge& edge, std::uint64_t weight) const;
    std::int32_t gatherer_of(const CurveEdge& edge) const;
    // In the order of the curves.
    static void sort(std::vector<CurveEdge>& edges);
    // The weight by step of what this rank has gathered: steps() numbers.
    std::vector<std::uint64_t> weights_of(std::span<const CurveEdge> gathered) const;
    // Who copies each. gathered: sorted. weights: of all ranks of the map, steps() numbers for each.
    std::vector<std::int32_t> copiers_of(std::span<const CurveEdge> gathered,
                                         std::span<const std::uint64_t> weights) const;

  private:
    using Ranks = std::vector<std::int32_t>;
    const Ranks& senders(std::int32_t step) const { return groups_[static_cast<std::size_t>(step)]; }
    Matrix matrix(std::int32_t step) const;

    std::int32_t steps_ = 1;
    std::vector<Ranks> groups_;  // this rank's own first, then those after it round robin
};

}  // namespace coco::schedule
