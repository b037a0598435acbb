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

}  // namespace

std::vector<Row> rows() {
    std::vector<Row> rows;
    for (const auto& algorithm : algorithms::registry())
        for (Collective c : {Collective::alltoall, Collective::allgather, Collective::bcast})
            if (serves(algorithm, c)) rows.push_back({&algorithm, exchange_of(c)});
    return rows;
}

std::vector<topology::NodeMap> machines(std::int32_t ranks) {
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

std::string to_text(const Row& row, const topology::NodeMap& map, std::int32_t root, std::int32_t segments) {
    constexpr const char* kExchanges[] = {"alltoall", "allgather", "bcast"};
    std::ostringstream text;
    text << row.algorithm->name << " " << kExchanges[static_cast<int>(row.exchange)] << ", domains of ranks:";
    for (std::int32_t d : map.domain) text << " " << d;
    text << ", root " << root << ", " << segments << " segments";
    return text.str();
}

}  // namespace coco::simulator
