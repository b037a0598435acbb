// SPDX-License-Identifier: BSD-3-Clause
#include "shapes.h"

#include <sstream>

namespace coco::simulator {
namespace {

using algorithms::Collective;
using algorithms::Exchange;

topology::NodeMap from_domains(const std::vector<std::uint64_t>& domains) {
    return topology::make_node_map(std::vector<std::uint64_t>(domains.size(), 0), domains);
}

std::vector<topology::NodeMap> one_nodes(std::int32_t ranks) {
    std::vector<topology::NodeMap> maps;
    for (std::int32_t domains : {1, 2, 3})
        if (domains <= ranks) maps.push_back(topology::one_node(ranks, domains));
    std::vector<std::uint64_t> uneven, dealt2, dealt3;
    for (std::uint64_t r = 0; r < static_cast<std::uint64_t>(ranks); ++r) {
        uneven.push_back(r == 0 ? 0 : r <= 2 ? 1 : 2);
        dealt2.push_back(r % 2);
        dealt3.push_back(r % 3);
    }
    if (ranks > 3)
        for (const auto& domains : {uneven, dealt2, dealt3}) maps.push_back(from_domains(domains));
    return maps;
}

template <class NodeOf>
topology::NodeMap cluster(std::int32_t ranks, NodeOf node_of) {
    std::vector<std::uint64_t> nodes;
    for (std::int32_t r = 0; r < ranks; ++r) nodes.push_back(static_cast<std::uint64_t>(node_of(r)));
    return topology::make_node_map(nodes, std::vector<std::uint64_t>(nodes.size(), 0));
}

std::vector<topology::NodeMap> clusters(std::int32_t ranks) {
    std::vector<topology::NodeMap> maps;
    maps.push_back(cluster(ranks, [](std::int32_t r) { return r; }));
    maps.push_back(topology::one_node(ranks));
    if (ranks > 2) maps.push_back(cluster(ranks, [](std::int32_t r) { return r / 2; }));
    if (ranks < 4) return maps;
    maps.push_back(cluster(ranks, [](std::int32_t r) { return r == 0 ? 0 : r <= 3 ? 1 : 2; }));
    maps.push_back(cluster(ranks, [](std::int32_t r) { return r % 3; }));
    maps.push_back(cluster(ranks, [](std::int32_t r) { return r * r % 7; }));
    return maps;
}

// All values worth a trial, of those that it takes for this exchange.
std::vector<algorithms::Parameters> all_parameters(const algorithms::Algorithm& algorithm,
                                                   Exchange exchange) {
    using algorithms::Inner, algorithms::Parameter, algorithms::Route;
    std::vector<algorithms::Parameters> all{{}};
    auto spread = [&](Parameter p, auto values, auto member) {
        if (!takes(algorithm, p)) return;
        std::vector<algorithms::Parameters> more;
        for (const auto& one : all)
            for (auto value : values) (more.emplace_back(one).*member) = value;
        all = more;
    };
    spread(Parameter::radix, std::initializer_list<std::int32_t>{2, 3, 4}, &algorithms::Parameters::radix);
    spread(Parameter::leaders, std::initializer_list<std::int32_t>{0, 1, 2},
           &algorithms::Parameters::leaders);
    spread(Parameter::window, std::initializer_list<std::int32_t>{0, 1, 2}, &algorithms::Parameters::window);
    spread(Parameter::width, std::initializer_list<std::int32_t>{1, 3, 8}, &algorithms::Parameters::width);
    spread(Parameter::inner,
           std::initializer_list<Inner>{Inner::pairwise, Inner::bruck, Inner::multinode_morton},
           &algorithms::Parameters::inner);
    spread(Parameter::route,
           std::initializer_list<Route>{Route::cheapest, Route::tree, Route::chain, Route::scatter},
           &algorithms::Parameters::route);
    // With an inner exchange the radix is Bruck's; a bcast has none, and alone has a route. A chain has no
    // radix.
    std::erase_if(all, [&](const auto& one) {
        if (exchange == Exchange::bcast)
            return one.inner != Inner::pairwise || one.leaders != 0 ||
                   (one.route == Route::chain && one.radix != 2);
        if (takes(algorithm, Parameter::radix) && one.leaders == 1) return true;  // as without
        if (takes(algorithm, Parameter::route) && one.route != Route::cheapest) return true;
        return takes(algorithm, Parameter::inner) && one.inner != Inner::bruck && one.radix != 2;
    });
    return all;
}

}  // namespace

namespace {

bool serves_any(const algorithms::Algorithm& algorithm, Exchange exchange) {
    for (int c = 0; c < algorithms::kCollectives; ++c)
        if (auto one = static_cast<Collective>(c);
            serves(algorithm, one) && exchange_of(one) == exchange && !is_neighbor(one))
            return true;
    return false;
}

}  // namespace

std::vector<Row> rows() {
    std::vector<Row> rows;
    for (const auto& algorithm : algorithms::registry())
        for (Exchange exchange : {Exchange::alltoall, Exchange::allgather, Exchange::bcast})
            for (const auto& parameters : all_parameters(algorithm, exchange))
                if (serves_any(algorithm, exchange)) rows.push_back({&algorithm, exchange, parameters});
    return rows;
}

std::vector<topology::NodeMap> machines(const algorithms::Algorithm& algorithm, std::int32_t ranks) {
    return algorithm.one_node() ? one_nodes(ranks) : clusters(ranks);
}

std::string to_text(const Row& row, const topology::NodeMap& map, std::int32_t root, std::int32_t segments) {
    constexpr const char* kExchanges[] = {"alltoall", "allgather", "bcast"};
    std::ostringstream text;
    text << row.algorithm->name << text_of(row.parameters) << " "
         << kExchanges[static_cast<int>(row.exchange)]
         << (row.algorithm->one_node() ? ", domains" : ", nodes") << " of ranks:";
    for (std::int32_t n : row.algorithm->one_node() ? map.domain : map.node) text << " " << n;
    text << ", root " << root << ", " << segments << " segments";
    return text.str();
}

}  // namespace coco::simulator
