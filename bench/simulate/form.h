// SPDX-License-Identifier: BSD-3-Clause
//
// The calls of one simulated rank, by the form of the collective. simulate.cc takes them through a
// measurement; barriers, which take no simulated time, stand between the functions.
#pragma once
#include <memory>

#include "plan.h"
#include "world.h"

namespace simulate {

class Form {
  public:
    Form(World& world, int self) : world_(world), self_(self) {}
    virtual ~Form() = default;

    // Called by rank 0 alone: sets World::moves and World::any for calls with World::block_bytes.
    virtual void prepare_world(const Plan& plan, double most_moved_bytes) = 0;
    virtual void prepare(const Plan& plan) = 0;
    // The call; ends with View::finish.
    virtual void perform(const Plan& plan) = 0;
    // Returns: how many blocks are wrong, as far as they can be looked at.
    virtual std::int64_t check(const Plan& plan) = 0;

  protected:
    Rank& own() { return world_.rank[static_cast<std::size_t>(self_)]; }
    bool is(coco::algorithms::Exchange exchange) const {
        return coco::base::exchange_of(world_.collective) == exchange;
    }

    World& world_;
    const int self_;
};

// Makes the form of World::collective.
std::unique_ptr<Form> make_form(World& world, int self);

// plain_form.cc: alltoall, allgather; sized_form.cc: alltoallv; bcast_form.cc: bcast from rank 0;
// neighbor_form.cc: neighbor_alltoall, neighbor_allgather.
std::unique_ptr<Form> make_plain_form(World& world, int self);
std::unique_ptr<Form> make_sized_form(World& world, int self);
std::unique_ptr<Form> make_bcast_form(World& world, int self);
std::unique_ptr<Form> make_neighbor_form(World& world, int self);

// The byte at `i` of the block that `sender` owes `receiver`.
inline std::byte content(int sender, int receiver, std::int64_t i) {
    auto hash = static_cast<std::uint32_t>(sender) * 2654435761u +
                static_cast<std::uint32_t>(receiver) * 40503u + static_cast<std::uint32_t>(i) * 97u;
    return static_cast<std::byte>(hash >> 16 ^ hash);
}

}  // namespace simulate
