// SPDX-License-Identifier: BSD-3-Clause
#include "comm/rank_card.h"

#include "comm/labels.h"
#include "os/probe.h"

namespace coco::comm {

RankCard make_rank_card(std::uint64_t choice_hash, std::int32_t rank, std::int32_t ranks) {
    RankCard card{};
    card.segment = heap::own_id();
    card.choice_hash = choice_hash;
    const Labels labels = labels_of(card.segment.host, ranks, rank);
    card.node_label = labels.node;
    card.domain_label = labels.domain;
    card.cpus = fold(os::usable_cpus());
    card.job_crowds_node = job_crowds_node() ? 1 : 0;
    return card;
}

}  // namespace coco::comm
