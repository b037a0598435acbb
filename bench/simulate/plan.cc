// SPDX-License-Identifier: BSD-3-Clause
#include "plan.h"

#include <bit>

#include "algorithms/blocks.h"
#include "policy/policy.h"

namespace simulate {
namespace {

namespace algorithms = coco::algorithms;
using algorithms::Collective;
using algorithms::Exchange;
using coco::schedule::Area;
using coco::schedule::Builder;
using coco::schedule::kArrived;
using coco::schedule::kDone;
using coco::schedule::Milestone;
using coco::schedule::Place;

// One rank of a run whose nodes hold ranks in blocks.
struct Seat {
    Seat(const World& world, int rank)
        : rank(rank),
          size(world.per_node),
          nodes(world.ranks / world.per_node),
          node(rank / size),
          place(rank % size),
          leader(node * size) {}

    bool leads() const { return rank == leader; }
    Place in_leader(std::int32_t index) const { return {leader, Area::scratch, index}; }

    std::int32_t rank, size, nodes, node, place, leader;
};

void await_mates(Builder& steps, const Seat& seat, Milestone milestone) {
    for (std::int32_t i = 1; i < seat.size; ++i) steps.wait(seat.leader + i, milestone);
}

// Scratch of a leader: a bundle for each node, then a bundle from each.
Plan leader_with_mpi(const Seat& seat) {
    const std::int32_t bundle = seat.size * seat.size, half = seat.nodes * bundle;
    Plan plan;
    plan.inner = true;
    Builder before, after;
    if (seat.leads()) before.scratch(2 * half).raise(kArrived);
    if (!seat.leads()) before.wait(seat.leader, kArrived);
    for (std::int32_t n = 0; n < seat.nodes; ++n)
        for (std::int32_t i = 0; i < seat.size; ++i)
            before.copy({seat.rank, Area::send, n * seat.size + i},
                        seat.in_leader(n * bundle + seat.place * seat.size + i));
    if (!seat.leads()) before.raise(1);
    if (seat.leads()) await_mates(before, seat, 1);
    if (seat.leads()) after.raise(1);
    if (!seat.leads()) after.wait(seat.leader, 1);
    for (std::int32_t n = 0; n < seat.nodes; ++n)
        for (std::int32_t i = 0; i < seat.size; ++i)
            after.copy(seat.in_leader(half + n * bundle + i * seat.size + seat.place),
                       {seat.rank, Area::recv, n * seat.size + i});
    plan.first = before.take();
    plan.second = after.raise(kDone).take();
    return plan;
}

// An allgather among leaders, in rounds; in each, some nodes in a row come.
class Gather {
  public:
    explicit Gather(const Seat& seat) : seat_(seat) {
        if (seat.leads()) steps_.scratch(seat.nodes * seat.size).raise(kArrived);
        if (!seat.leads()) steps_.wait(seat.leader, kArrived);
        steps_.copy({seat.rank, Area::send, 0}, seat.in_leader(seat.leader + seat.place));
        if (!seat.leads()) steps_.raise(1);
        if (seat.leads()) await_mates(steps_, seat, 1);
        unpack(seat.node, 1);
    }

    void round(std::int32_t to, std::int32_t from, std::int32_t out, std::int32_t in, std::int32_t nodes) {
        if (seat_.leads()) {
            steps_.receive(from * seat_.size, seat_.in_leader(in * seat_.size), nodes * seat_.size);
            steps_.send(to * seat_.size, seat_.in_leader(out * seat_.size), nodes * seat_.size);
            copy_later();  // while the messages are under way
            steps_.complete(0);
        }
        unpack(in, nodes);
    }

    Plan take() {
        copy_later();
        Plan plan;
        plan.first = steps_.raise(kDone).take();
        return plan;
    }

  private:
    void unpack(std::int32_t first, std::int32_t nodes) {
        ++milestone_;
        if (seat_.leads()) {
            steps_.raise(milestone_);
            later_.push_back({first, nodes});
        } else {
            steps_.wait(seat_.leader, milestone_);
            copy(first, nodes);
        }
    }
    void copy_later() {
        for (auto [first, nodes] : later_) copy(first, nodes);
        later_.clear();
    }
    void copy(std::int32_t first, std::int32_t nodes) {
        for (std::int32_t i = first * seat_.size; i < (first + nodes) * seat_.size; ++i)
            steps_.copy(seat_.in_leader(i), {seat_.rank, Area::recv, i});
    }

    const Seat& seat_;
    Builder steps_;
    Milestone milestone_ = 1;
    std::vector<std::pair<std::int32_t, std::int32_t>> later_;
};

Plan leader_ring(const Seat& seat) {
    Gather gather(seat);
    auto round_from = [&](std::int32_t d) { return (seat.node + d + seat.nodes) % seat.nodes; };
    for (std::int32_t i = 0; i + 1 < seat.nodes; ++i)
        gather.round(round_from(1), round_from(-1), round_from(-i), round_from(-i - 1), 1);
    return gather.take();
}

Plan leader_doubling(const Seat& seat) {
    Gather gather(seat);
    for (std::int32_t have = 1; have < seat.nodes; have *= 2) {
        std::int32_t partner = seat.node ^ have;
        gather.round(partner, partner, seat.node / have * have, partner / have * have, have);
    }
    return gather.take();
}

// Bruck's algorithm as MPICH and its kin have it: blocks are rotated, each round packs what it sends and
// unpacks what it receives, and a last copy brings the blocks in order. SMPI's functions do it for nothing.
// Scratch: the blocks, what is packed, what comes.
Plan bruck_with_copies(const World& world, std::int32_t rank) {
    Builder steps;
    const std::int32_t ranks = world.ranks;
    steps.scratch(3 * ranks);
    auto scratch = [&](std::int32_t index) { return Place{rank, Area::scratch, index}; };
    for (std::int32_t i = 0; i < ranks; ++i) steps.copy({rank, Area::send, (rank + i) % ranks}, scratch(i));
    for (std::int32_t distance = 1; distance < ranks; distance *= 2) {
        std::int32_t blocks = 0;
        for (std::int32_t i = 0; i < ranks; ++i)
            if ((i & distance) != 0) steps.copy(scratch(i), scratch(ranks + blocks++));
        steps.receive((rank - distance + ranks) % ranks, scratch(2 * ranks), blocks);
        steps.send((rank + distance) % ranks, scratch(ranks), blocks).complete();
        for (std::int32_t i = ranks - 1; i >= 0; --i)
            if ((i & distance) != 0) steps.copy(scratch(2 * ranks + --blocks), scratch(i));
    }
    for (std::int32_t i = 0; i < ranks; ++i)
        steps.copy(scratch(i), {rank, Area::recv, (rank - i + ranks) % ranks});
    Plan plan;
    plan.first = steps.raise(kDone).take();
    return plan;
}

// A schedule of the library's, but for bcasts, whose segments depend on the size.
Plan library_plan(const coco::policy::Choice& choice, const World& world, int rank) {
    Plan plan;
    plan.choice = choice;
    plan.mpi = choice.algorithm == nullptr;
    auto exchange = coco::base::exchange_of(world.collective);
    if (plan.mpi || exchange == Exchange::bcast) return plan;
    plan.first = choice.algorithm->make_schedule(
        {.exchange = exchange, .rank = rank, .map = &world.map, .parameters = choice.parameters});
    return plan;
}

Plan default_plan(const World& world, int rank) {
    coco::policy::Policy policy;
    coco::policy::parse_rules(coco::policy::default_rules(), "built-in", policy.rules);
    auto bytes = static_cast<std::uint64_t>(world.block_bytes);
    auto choice = coco::policy::select(
                      policy, {world.collective, world.map.nodes(), world.per_node, world.map.nodes(), bytes})
                      .choice;
    Plan plan = library_plan(choice, world, rank);
    plan.label = "default=" + (choice.algorithm == nullptr
                                   ? "mpi"
                                   : std::string(choice.algorithm->name) + text_of(choice.parameters));
    return plan;
}

// Contenders that are neither the library's nor SMPI's.
std::optional<Plan> other_plan(const std::string& name, const World& world, const Seat& seat) {
    if (name == "leader+mpi" && world.collective == Collective::alltoall) {
        Plan plan = leader_with_mpi(seat);
        MPI_Comm_split(MPI_COMM_WORLD, seat.place, seat.rank, &plan.leaders);
        return plan;
    }
    if (name == "bruck+copies" && world.collective == Collective::alltoall)
        return bruck_with_copies(world, seat.rank);
    if (name == "sloav+phases" && world.collective == Collective::alltoallv) {
        Plan plan = library_plan({algorithms::find("sloav")}, world, seat.rank);
        plan.phases = true;
        return plan;
    }
    if (world.collective != Collective::allgather) return std::nullopt;
    if (name == "leader+ring") return leader_ring(seat);
    bool whole = std::has_single_bit(static_cast<unsigned>(seat.nodes));
    if (name == "leader+doubling" && whole) return leader_doubling(seat);
    return std::nullopt;
}

}  // namespace

std::optional<Plan> make_plan(const std::string& name, World& world, int rank, std::string& error) {
    if (is_neighbor(world.collective)) return make_neighbor_plan(name, world, rank, error);
    if (name == "mpi") return library_plan({}, world, rank);
    if (name == "default") return default_plan(world, rank);
    if (name.find('+') != std::string::npos) {
        error = name + ": not for this collective, or number of nodes";
        return other_plan(name, world, {world, rank});
    }
    coco::policy::Choice choice;
    auto fault = coco::policy::parse_choice(name, world.collective, choice);
    if (fault || choice.algorithm == nullptr || choice.algorithm->one_node()) {
        error = fault ? fault->line : name + " is for one node";
        return std::nullopt;
    }
    return library_plan(choice, world, rank);
}

}  // namespace simulate
