// SPDX-License-Identifier: BSD-3-Clause
#include "comm/rank_card.h"

#include <optional>
#include <string>

#include "base/check.h"
#include "base/env.h"
#include "os/probe.h"
#include "topology/node_map.h"

namespace coco::comm {
namespace {

// Where COCO_TOPOLOGY puts a rank; nothing: it counts where it is.
std::optional<topology::Seat> invented_seat(std::int32_t rank, std::int32_t ranks) {
    COCO_CHECK(rank >= 0 && rank < ranks, "a rank with a card is one of the ranks");
    const std::string_view invented = base::env("COCO_TOPOLOGY");
    std::string error;
    const auto machine = invented.empty() ? std::nullopt : os::invented_machine(invented, error);
    return machine ? std::optional(topology::deal(*machine, ranks, rank)) : std::nullopt;
}

}  // namespace

RankCard make_rank_card(std::uint64_t choice_hash, std::int32_t rank, std::int32_t ranks) {
    RankCard card{};
    card.segment = heap::own_id();
    card.choice_hash = choice_hash;
    card.node_label = card.segment.host;
    card.domain_label = static_cast<std::uint64_t>(os::seat().domain);
    if (const auto seat = invented_seat(rank, ranks)) {
        card.node_label += static_cast<std::uint64_t>(seat->node);
        card.domain_label = static_cast<std::uint64_t>(seat->domain);
    }
    card.cpus = fold(os::usable_cpus());
    card.job_crowds_node = job_crowds_node() ? 1 : 0;
    return card;
}

}  // namespace coco::comm
