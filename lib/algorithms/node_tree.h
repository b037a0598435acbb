// SPDX-License-Identifier: BSD-3-Clause
//
// The nodes of a bcast as a tree. Nodes are numbered from the root's node on, going round: that one is 0. In
// base r the parent of a node is the node whose number has 0 in place of its lowest digit that is not 0 (r =
// 2: the binomial tree). So the nodes below a node have the numbers right behind its own. In a chain the
// parent is the node before. Called by the bcast of leader. Thread safety: immutable.
#pragma once
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace coco::algorithms {

class NodeTree {
  public:
    // Requires: radix >= 2.
    NodeTree(std::int32_t nodes, std::int32_t radix, bool chain)
        : nodes_(nodes), radix_(radix), chain_(chain) {
        COCO_CHECK(nodes >= 1, "a tree has nodes");
        COCO_CHECK(radix >= 2, "digits have a base of two or more");
    }

    std::int32_t nodes() const { return nodes_; }
    // Requires: node != 0.
    std::int32_t parent(std::int32_t node) const;
    // Sorted: children with the most nodes below them come first.
    std::vector<std::int32_t> children(std::int32_t node) const;
    // The node and all nodes below it have the numbers [node, end).
    std::int32_t end(std::int32_t node) const;
    // The number of edges from the root to the farthest node.
    std::int32_t depth() const;

  private:
    std::int64_t lowest_weight(std::int32_t node) const;

    std::int32_t nodes_;
    std::int64_t radix_;
    bool chain_;
};

}  // namespace coco::algorithms
