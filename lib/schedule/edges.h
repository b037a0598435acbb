// SPDX-License-Identifier: BSD-3-Clause
//
// The edges of a process topology: which block of which rank goes to which rank, what one rank knows of the
// edges, and how the edges within a node are dealt to its ranks along a Morton curve. Called by algorithms,
// and by comm, which carries edges from rank to rank. No rank ever holds the whole graph. Thread safety: pure
// functions, immutable objects.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/index.h"
#include "schedule/order.h"
#include "topology/node_map.h"

namespace coco::schedule {

// The way of one block: block `sent` of the sender becomes block `received` of the receiver. (In an allgather
// all blocks of a sender are the same one.) Several edges may join two ranks, and an edge may join a rank
// with itself.
struct Edge {
    std::int32_t sender;
    std::int32_t receiver;
    std::int32_t sent;
    std::int32_t received;
    friend bool operator==(const Edge&, const Edge&) = default;
};

// One rank's knowledge of a neighbourhood.
struct Neighborhood {
    std::vector<std::int32_t> destinations;  // by send block: the rank that it goes to; below 0: nobody
    std::int32_t recv_blocks = 0;            // with those that come from nobody
    std::vector<Edge> incoming;              // by (sender, sent): the order in which a sender's messages come

    std::int32_t send_blocks() const { return base::number(destinations.size()); }
    // The edges from one sender, in the order of its blocks.
    std::span<const Edge> incoming_from(std::int32_t sender) const;
    friend bool operator==(const Neighborhood&, const Neighborhood&) = default;
};

// Which rank copies an edge within a node.
enum class Cut : std::uint8_t {
    own,            // its receiver
    curve,          // any rank of the node: each has an equal share of the curve over all pairs of ranks
    domain_curves,  // any rank of its receiver's domain, by such a curve for each domain of senders
};

// The part of one rank in copying the edges within its node.
struct EdgeShare {
    std::vector<Edge> edges;             // the edges that this rank copies, in this order
    std::vector<std::int32_t> touching;  // the other ranks that copy from or to this rank's buffers
    friend bool operator==(const EdgeShare&, const EdgeShare&) = default;
};

// The share by Cut::own: the edges that end at the rank; first those from itself, then those from the ranks
// of its node, nearest domain first.
EdgeShare own_share(const topology::NodeMap& map, std::int32_t rank, const Neighborhood& neighborhood);

// An edge and its position on a curve. Sent between ranks as bytes.
struct CurveEdge {
    Edge edge;
    std::int32_t step;  // which curve: senders are of the domain `step` places after the receiver's
    std::uint32_t unused;
    std::int64_t position;  // on the curve
    std::uint64_t weight;   // the cost of copying the edge
};

// Cuts the curve of a node (with Cut::domain_curves: the curves of this rank's domain) into shares of equal
// weight, together with the other ranks there. 1. Each rank places the edges that end at it on the curve, and
// gives each edge to the rank that gathers that stretch of the curve; the stretches are equal shares of all
// pairs of ranks. 2. Each rank sorts what it has gathered. 3. All ranks tell all others the weight that they
// have gathered. Then each rank knows which rank has to copy each edge of its stretch.
class CurveCut {
  public:
    // Requires: cut is not own.
    CurveCut(const topology::NodeMap& map, Cut cut, std::int32_t rank);

    // The number of curves: the largest number that any node has.
    std::int32_t steps() const { return steps_; }
    // Requires (both): the edge ends at this rank and begins on its node.
    CurveEdge place(const Edge& edge, std::uint64_t weight) const;
    std::int32_t gatherer_of(const CurveEdge& edge) const;
    // Sorts edges by curve and position.
    static void sort(std::vector<CurveEdge>& edges);
    // The weight that this rank has gathered on each curve: steps() numbers.
    std::vector<std::uint64_t> weights_of(std::span<const CurveEdge> gathered) const;
    // The rank that copies each of the gathered edges. gathered: sorted. weights: what weights_of() returned
    // on each rank of the map, one after the other.
    std::vector<std::int32_t> copiers_of(std::span<const CurveEdge> gathered,
                                         std::span<const std::uint64_t> weights) const;

  private:
    using Ranks = std::vector<std::int32_t>;
    const Ranks& senders(std::int32_t step) const {
        COCO_CHECK(step >= 0 && base::index(step) < groups_.size(), "an edge begins on the node of its end");
        return groups_[base::index(step)];
    }
    Matrix matrix(std::int32_t step) const;

    std::int32_t steps_ = 1;
    std::vector<Ranks> groups_;  // the ranks of this rank's domain (or node), then of the domains after it
};

}  // namespace coco::schedule
