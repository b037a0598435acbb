// SPDX-License-Identifier: BSD-3-Clause
#include <ctime>

#include "plan.h"

namespace simulate {
namespace {

namespace algorithms = coco::algorithms;
using algorithms::Exchange;
using coco::schedule::Area;

// The way of MPICH and Open MPI: all receives and all sends at once, within nodes too.
coco::schedule::Schedule direct_sends(const World& world, std::int32_t rank) {
    const auto& near = world.graph->near[static_cast<std::size_t>(rank)];
    const bool personal = coco::base::is_personal(world.collective);
    coco::schedule::Builder steps;
    for (const auto& edge : near.incoming) steps.receive(edge.sender, {rank, Area::recv, edge.received}, 1);
    for (std::int32_t i = 0; i < near.send_blocks(); ++i)
        steps.send(near.destinations[static_cast<std::size_t>(i)], {rank, Area::send, personal ? i : 0}, 1);
    return steps.complete().raise(coco::schedule::kDone).take();
}

// The shape that lib/exec gives the algorithm in a call of this size, and what finding it out has cost.
algorithms::Shape shape_of(const coco::policy::Choice& choice, const World& world, std::int32_t rank,
                           const SetupCost*& cost) {
    const auto r = static_cast<std::size_t>(rank);
    algorithms::Shape shape{.exchange = coco::base::exchange_of(world.collective),
                            .rank = rank,
                            .map = &world.map,
                            .parameters = choice.parameters,
                            .neighborhood = &world.graph->near[r],
                            .share = &world.graph->share[r]};
    if (choice.algorithm->needs_bundles()) {
        const auto& made =
            world.setup->bundles(shape.exchange == Exchange::alltoall, choice.parameters.leaders);
        shape.bundles = &made.of[r];
        cost = &made.cost;
    } else if (choice.algorithm->combines()) {
        const auto& made = world.setup->combining(choice.parameters.threshold, choice.parameters.depth);
        cost = &made.cost;
        if (world.block_bytes > kCombinedBytes) return shape;
        shape.combined_sends = &made.of[r].sends;
        shape.combined_receives = &made.of[r].receives;
    }
    return shape;
}

}  // namespace

std::optional<Plan> make_neighbor_plan(const std::string& name, World& world, int rank, std::string& error) {
    Plan plan;
    if (name == "direct+computed") {
        plan.messages_alone = true;
        return plan;
    }
    if (name == "direct") {
        plan.first = direct_sends(world, rank);
        return plan;
    }
    auto fault = coco::policy::parse_choice(name, world.collective, plan.choice);
    if (fault || plan.choice.algorithm == nullptr || plan.choice.algorithm->cut != coco::schedule::Cut::own) {
        error = fault ? fault->line : name + " is for one node";
        return std::nullopt;
    }
    const auto shape = shape_of(plan.choice, world, rank, plan.setup);
    const std::clock_t begin = std::clock();
    plan.first = plan.choice.algorithm->make_schedule(shape);
    world.rank[static_cast<std::size_t>(rank)].scheduling_s =
        static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    return plan;
}

}  // namespace simulate
