// SPDX-License-Identifier: BSD-3-Clause
//
// On which node and in which NUMA domain each rank of a communicator is, as plain integers. The map is made
// by comm from what it has found, or from an invented machine. Thread safety: immutable once built.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/index.h"

namespace coco::topology {

struct NodeMap {
    // Both arrays are indexed by rank. Nodes are numbered 0, 1, ... in the order in which they first occur,
    // and so are the domains, across all nodes: a domain belongs to one node.
    std::vector<std::int32_t> node;
    std::vector<std::int32_t> domain;

    std::int32_t ranks() const {
        COCO_CHECK_DEAR(node.size() == domain.size(), "each rank of a map has a node and a domain");
        return base::number(node.size());
    }
    std::int32_t nodes() const { return nodes_; }
    std::int32_t domains() const { return domains_; }
    // The ranks of the node that has most.
    std::int32_t ranks_per_node() const { return ranks_per_node_; }
    // Ranks of a node (or domain) in rank order; the first is its leader.
    std::vector<std::int32_t> ranks_on_node(std::int32_t node_index) const;
    std::vector<std::int32_t> ranks_in_domain(std::int32_t domain_index) const;

    NodeMap() = default;
    NodeMap(std::vector<std::int32_t> node_of_rank, std::vector<std::int32_t> domain_of_rank);

  private:
    std::int32_t nodes_ = 0, domains_ = 0, ranks_per_node_ = 0;
};

// Makes a map from labels, indexed by rank. Ranks with equal node labels are on one node. Domain labels are
// compared within a node only.
NodeMap make_node_map(const std::vector<std::uint64_t>& node_label,
                      const std::vector<std::uint64_t>& domain_label);
// `ranks` ranks on one node with `domains` domains of (nearly) equal numbers of consecutive ranks.
NodeMap one_node(std::int32_t ranks, std::int32_t domains = 1);

// An invented machine, from COCO_TOPOLOGY: "nodes=4,domains=2" (domains per node; either may be left out).
struct Invented {
    std::int32_t nodes = 1;
    std::int32_t domains = 1;  // per node
};
// Returns: nothing if the text is not of that form (then `error` says why).
std::optional<Invented> parse_invented(std::string_view text, std::string& error);
// Deals `world_ranks` ranks to the invented nodes and domains in rank order, as evenly as possible: the first
// ones get one more. Returns: the node of rank `world_rank`, and its domain within that node.
struct Seat {
    std::int32_t node;
    std::int32_t domain;
};
Seat deal(const Invented& machine, std::int32_t world_ranks, std::int32_t world_rank);

}  // namespace coco::topology
