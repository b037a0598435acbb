// SPDX-License-Identifier: BSD-3-Clause
//
// The nodes of a bcast as a tree, by their distance from the root's, round: 0 is the root's. In base r a node
// hangs below the one whose number lacks its lowest digit (r = 2: the binomial tree), so that what hangs
// below a node are the numbers right behind its own. In a chain each hangs below the one before it. Called by
// the bcast of leader. Thread safety: immutable.
#pragma once
#include <cstdint>
#include <vector>

namespace coco::algorithms {

class NodeTree {
  public:
    // Requires: radix >= 2.
    NodeTree(std::int32_t nodes, std::int32_t radix, bool chain)
        : nodes_(nodes), radix_(radix), chain_(chain) {}

    std::int32_t nodes() const { return nodes_; }
    // Requires: node != 0.
    std::int32_t parent(std::int32_t node) const;
    // Those with the most nodes below them first.
    std::vector<std::int32_t> children(std::int32_t node) const;
    // The node and those below it are [node, end).
    std::int32_t end(std::int32_t node) const;
    // From the root to the farthest.
    std::int32_t depth() const;

  private:
    std::int64_t lowest_weight(std::int32_t node) const;

    std::int32_t nodes_;
    std::int64_t radix_;
    bool chain_;
};

}  // namespace coco::algorithms
