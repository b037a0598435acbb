// SPDX-License-Identifier: BSD-3-Clause
#include "comm/labels.h"

#include <optional>
#include <string>

#include "base/check.h"
#include "base/env.h"
#include "os/probe.h"
#include "topology/node_map.h"

namespace coco::comm {

Labels labels_of(std::uint64_t host, std::int32_t ranks, std::int32_t rank) {
    COCO_CHECK(rank >= 0 && rank < ranks, "a rank with labels is one of the ranks");
    Labels labels{host, static_cast<std::uint64_t>(os::seat().domain)};
    std::string error;
    std::string_view invented = base::env("COCO_TOPOLOGY");
    auto machine = invented.empty() ? std::nullopt : os::invented_machine(invented, error);
    if (!machine) return labels;
    const topology::Seat seat = topology::deal(*machine, ranks, rank);
    return {labels.node + static_cast<std::uint64_t>(seat.node), static_cast<std::uint64_t>(seat.domain)};
}

}  // namespace coco::comm
