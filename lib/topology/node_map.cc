// SPDX-License-Identifier: BSD-3-Clause
#include "topology/node_map.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/env.h"
#include "base/index.h"
#include "topology/share.h"

namespace coco::topology {
namespace {

constexpr std::uint64_t kMostInvented = 1 << 20;

std::int32_t count_of(const std::vector<std::int32_t>& numbers) {
    return numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end()) + 1;
}

std::vector<std::int32_t> ranks_with(const std::vector<std::int32_t>& numbers, std::int32_t wanted) {
    std::vector<std::int32_t> ranks;
    for (std::size_t r = 0; r < numbers.size(); ++r)
        if (numbers[r] == wanted) ranks.push_back(base::number(r));
    return ranks;
}

// Numbers keys 0, 1, ... in the order in which they are first asked for.
template <typename Key>
class Numbering {
  public:
    std::int32_t operator()(const Key& key) {
        return numbers_.try_emplace(key, base::number(numbers_.size())).first->second;
    }

  private:
    std::map<Key, std::int32_t> numbers_;
};

std::string quoted(std::string_view text) { return std::string(1, '"').append(text).append(1, '"'); }

// Reads one "key=count". Returns: false with `error` set.
bool parse_entry(std::string_view entry, Invented& machine, bool seen[2], std::string& error) {
    auto equals = entry.find('=');
    std::string_view key = entry.substr(0, equals);
    bool is_nodes = key == "nodes";
    if (equals == entry.npos || (!is_nodes && key != "domains")) {
        error = quoted(entry) + " is neither nodes=N nor domains=M";
        return false;
    }
    if (seen[is_nodes]) {
        error = std::string(key) + " is given twice";
        return false;
    }
    seen[is_nodes] = true;
    std::uint64_t count = 0;
    if (!base::parse_number(entry.substr(equals + 1), count) || count == 0 || count > kMostInvented) {
        error = std::string(key) + " must be a number from 1 to " + std::to_string(kMostInvented) + ", not " +
                quoted(entry.substr(equals + 1));
        return false;
    }
    (is_nodes ? machine.nodes : machine.domains) = base::number(count);
    return true;
}

}  // namespace

NodeMap::NodeMap(std::vector<std::int32_t> node_of_rank, std::vector<std::int32_t> domain_of_rank)
    : node(std::move(node_of_rank)),
      domain(std::move(domain_of_rank)),
      nodes_(count_of(node)),
      domains_(count_of(domain)) {
    COCO_CHECK(node.size() == domain.size(), "each rank of a map has a node and a domain");
    std::vector<std::int32_t> on_node(base::index(nodes_));
    for (const std::int32_t n : node) ranks_per_node_ = std::max(ranks_per_node_, ++on_node[base::index(n)]);
}

std::vector<std::int32_t> NodeMap::ranks_on_node(std::int32_t node_index) const {
    COCO_CHECK_DEAR(node_index >= 0 && node_index < nodes(), "a node with ranks is one of the nodes");
    return ranks_with(node, node_index);
}
std::vector<std::int32_t> NodeMap::ranks_in_domain(std::int32_t domain_index) const {
    COCO_CHECK_DEAR(domain_index >= 0 && domain_index < domains(),
                    "a domain with ranks is one of the domains");
    return ranks_with(domain, domain_index);
}

NodeMap make_node_map(const std::vector<std::uint64_t>& node_label,
                      const std::vector<std::uint64_t>& domain_label) {
    COCO_CHECK(node_label.size() == domain_label.size(),
               "each rank has a label of a node and one of a domain");
    std::vector<std::int32_t> node, domain;
    Numbering<std::uint64_t> node_number;
    Numbering<std::pair<std::int32_t, std::uint64_t>> domain_number;
    for (std::size_t r = 0; r < node_label.size(); ++r) {
        node.push_back(node_number(node_label[r]));
        domain.push_back(domain_number({node.back(), domain_label[r]}));
    }
    return {std::move(node), std::move(domain)};
}

NodeMap one_node(std::int32_t ranks, std::int32_t domains) {
    COCO_CHECK(ranks >= 0 && domains >= 1, "the ranks of a node are in a domain or more");
    std::vector<std::int32_t> domain;
    for (std::int32_t r = 0; r < ranks; ++r) domain.push_back(base::number(part_of(ranks, domains, r)));
    return {std::vector<std::int32_t>(base::index(ranks)), std::move(domain)};
}

std::optional<Invented> parse_invented(std::string_view text, std::string& error) {
    Invented machine;
    bool seen[2] = {false, false};
    for (std::size_t at = 0; at <= text.size();) {
        std::size_t comma = std::min(text.find(',', at), text.size());
        if (!parse_entry(text.substr(at, comma - at), machine, seen, error)) return std::nullopt;
        at = comma + 1;
    }
    return machine;
}

Seat deal(const Invented& machine, std::int32_t world_ranks, std::int32_t world_rank) {
    COCO_CHECK(machine.nodes >= 1 && machine.domains >= 1,
               "an invented machine has nodes, and these have domains");
    COCO_CHECK(world_rank >= 0 && world_rank < world_ranks, "a rank with a seat is one of the ranks");
    std::int64_t node = part_of(world_ranks, machine.nodes, world_rank);
    Share on_node = share_of(world_ranks, machine.nodes, node);
    std::int64_t domain = part_of(on_node.count, machine.domains, world_rank - on_node.first);
    return {base::number(node), base::number(domain)};
}

}  // namespace coco::topology
