// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms/node_tree.h"

#include <algorithm>

#include "base/check.h"
#include "base/index.h"

namespace coco::algorithms {

// The weight r^k of the lowest digit that is not 0. For the root: a weight that no node's digits have.
std::int64_t NodeTree::lowest_weight(std::int32_t node) const {
    COCO_CHECK(node >= 0 && node < nodes_, "a node is in its tree");
    std::int64_t weight = 1;
    while (node == 0 ? weight < nodes_ : node / weight % radix_ == 0) weight *= radix_;
    return weight;
}

std::int32_t NodeTree::parent(std::int32_t node) const {
    COCO_CHECK(node > 0 && node < nodes_, "the root of a tree has no parent");
    if (chain_) return node - 1;
    std::int64_t weight = lowest_weight(node);
    return base::number(node - node / weight % radix_ * weight);
}

std::vector<std::int32_t> NodeTree::children(std::int32_t node) const {
    std::vector<std::int32_t> all;
    if (chain_ && node + 1 < nodes_) all.push_back(node + 1);
    for (std::int64_t w = lowest_weight(node) / radix_; !chain_ && w > 0; w /= radix_)
        for (std::int64_t child = node + w; child < std::min<std::int64_t>(node + w * radix_, nodes_);
             child += w)
            all.push_back(base::number(child));
    return all;
}

std::int32_t NodeTree::end(std::int32_t node) const {
    if (chain_) return nodes_;
    return base::number(std::min<std::int64_t>(node + lowest_weight(node), nodes_));
}

std::int32_t NodeTree::depth() const {
    if (chain_) return nodes_ - 1;
    std::int32_t digits = 0;
    for (std::int64_t w = lowest_weight(0); w > 1; w /= radix_) ++digits;
    return digits;
}

}  // namespace coco::algorithms
