// SPDX-License-Identifier: BSD-3-Clause
#include "comm/arrange.h"

#include <algorithm>
#include <string_view>

#include "base/check.h"
#include "base/env.h"
#include "base/index.h"
#include "comm/crowding.h"
#include "mpi/progress.h"

namespace coco::comm {
namespace {

// Whether the MPI library gives the CPU away itself while it waits: Open MPI does where it was told to, by
// the user or by its launcher, which counts ranks. A second yield to each look makes a message's way longer.
bool library_yields() {
    for (const char* name : {"OMPI_MCA_mpi_yield_when_idle", "OMPI_MCA_mpi_oversubscribe"}) {
        std::string_view value = base::env(name);
        if (value == "1" || value == "true" || value == "yes") return true;
    }
    return false;
}

}  // namespace

void arrange(Comm& comm, const std::vector<const RankCard*>& cards) {
    COCO_CHECK(cards.size() == base::index(comm.ranks), "each rank of a communicator has a card");
    COCO_CHECK(comm.rank >= 0 && comm.rank < comm.ranks, "a rank of a communicator is one of its ranks");
    std::vector<std::uint64_t> nodes, domains;
    Crowding crowding;
    for (const RankCard* card : cards) {
        nodes.push_back(card->node_label);
        domains.push_back(card->domain_label);
        crowding.add(card->segment.host, card->cpus, card->job_crowds_node != 0);
    }
    comm.crowded_here = crowding.is_crowded(cards[base::index(comm.rank)]->segment.host);
    comm.crowded = crowding.is_any_crowded();
    comm.map = topology::make_node_map(nodes, domains);
    comm.mates = comm.map.ranks_on_node(comm.map.node[comm.rank]);
    std::erase(comm.mates, comm.rank);
}

void choose_waiting(Comm& comm) {
    comm.lane.channel.waiting = {};
    comm.lane.channel.waiting.progress = mpi::drive_progress;
    comm.lane.post.yields = false;
    // For a network's latency it does not pay to spin, nor to keep a mate from running who shares the core.
    if (comm.wire != nullptr) comm.lane.channel.waiting.spins = 100;
    if (!comm.crowded_here) return;
    comm.lane.channel.waiting.spins = 0;
    comm.lane.post.yields = !library_yields();
    comm.lane.channel.waiting.yields = 2000;
    comm.lane.channel.waiting.yields_per_progress = 2;
    comm.lane.channel.waiting.least_sleep_ns = 10'000;
    comm.lane.channel.waiting.most_sleep_ns = 200'000;
}

}  // namespace coco::comm
