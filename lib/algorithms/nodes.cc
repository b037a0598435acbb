// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms/nodes.h"

#include <algorithm>

#include "algorithms/blocks.h"
#include "base/check.h"
#include "base/index.h"
#include "topology/share.h"

namespace coco::algorithms {

using schedule::Area;
using schedule::Builder;
using schedule::Place;

Nodes::Nodes(const Shape& shape)
    : shape_(shape), ranks_(base::index(shape.map->nodes())), own_(shape.map->node[base::index(shape.rank)]) {
    for (std::int32_t r = 0; r < shape.map->ranks(); ++r)
        ranks_[base::index(shape.map->node[base::index(r)])].push_back(r);
}

std::int32_t Nodes::index_in(const std::vector<std::int32_t>& ranks) const {
    const auto at = std::ranges::find(ranks, shape_.rank);
    COCO_CHECK(at != ranks.end(), "a rank with an index is among the ranks");
    return base::number(at - ranks.begin());
}

std::span<const std::int32_t> Nodes::team(std::int32_t node, std::int32_t teams, std::int32_t number) const {
    COCO_CHECK(teams >= 1 && teams <= size_of(node), "no node has more teams than ranks");
    COCO_CHECK(number >= 0 && number < teams, "a team is one of the teams of its node");
    auto share = topology::share_of(size_of(node), teams, number);
    return std::span(ranks_of(node)).subspan(base::index(share.first), base::index(share.count));
}

std::int32_t Nodes::smallest() const {
    COCO_CHECK(!ranks_.empty(), "there is a node");
    auto least = std::ranges::min_element(ranks_, {}, &std::vector<std::int32_t>::size);
    return base::number(least->size());
}

void Nodes::fill_row(Builder& steps, std::int32_t node, Place bundle, std::int32_t row) const {
    COCO_CHECK(node != own_, "a bundle goes to another node");
    COCO_CHECK(row >= 0 && row < own_size(), "a bundle has a row for each rank of its node");
    Place target = behind(bundle, row * size_of(node));
    for (std::int32_t receiver : ranks_of(node)) {
        steps.copy(sent(shape_.exchange, shape_.rank, receiver), target);
        target = behind(target, 1);
    }
}

void Nodes::take_blocks(Builder& steps, std::span<const std::int32_t> senders, Place bundle) const {
    COCO_CHECK(!senders.empty(), "a bundle comes from ranks");
    const bool personal = shape_.exchange == Exchange::alltoall;
    Place source = personal ? behind(bundle, index_on_node()) : bundle;
    for (std::int32_t sender : senders) {
        const bool own = sender == shape_.rank;
        steps.copy(own ? sent(shape_.exchange, sender, sender) : source, received(sender, shape_.rank));
        source = behind(source, personal ? own_size() : 1);
    }
}

void Nodes::leave_for_mates(Builder& steps) const {
    for (std::int32_t i = 0; i < own_size(); ++i)
        if (own_ranks()[base::index(i)] != shape_.rank)
            steps.copy(sent(shape_.exchange, shape_.rank, own_ranks()[base::index(i)]),
                       {shape_.rank, Area::scratch, i});
    if (is_a_row(own_)) steps.left(own_ranks().front(), own_size());
}

void Nodes::take_from_mates(Builder& steps, std::initializer_list<Waits*> waits) const {
    // Each rank begins with the rank behind itself, so that not all read the same mate.
    for (std::int32_t i = 1; i < own_size(); ++i) {
        std::int32_t mate = own_ranks()[base::index((index_on_node() + i) % own_size())];
        for (Waits* w : waits) w->await(steps, mate);
        steps.copy({mate, Area::scratch, index_on_node()}, received(mate, shape_.rank));
    }
}

void Nodes::exchange_within(Builder& steps) const {
    const bool personal = shape_.exchange == Exchange::alltoall;
    if (own_size() > 1) {
        if (personal)
            leave_for_mates(steps);
        else
            steps.copy(sent(shape_.exchange, shape_.rank, shape_.rank), {shape_.rank, Area::scratch, 0});
        steps.raise(schedule::kArrived);
    }
    copy_block(steps, shape_.exchange, shape_.rank, shape_.rank);
    Waits arrivals{shape_.rank, schedule::kArrived};
    if (personal) return take_from_mates(steps, {&arrivals});
    for (std::int32_t i = 1; i < own_size(); ++i) {
        const std::int32_t mate = own_ranks()[base::index((index_on_node() + i) % own_size())];
        arrivals.await(steps, mate);
        steps.copy({mate, Area::scratch, 0}, received(mate, shape_.rank));
    }
}

}  // namespace coco::algorithms
