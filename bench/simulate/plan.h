// SPDX-License-Identifier: BSD-3-Clause
//
// The contenders of a comparison, by name, and what one rank does for each:
//   bruck:radix=4, leader:bruck, ...  the library's own algorithms, as a policy names them
//   default                           what the built-in rules choose for these nodes, ranks and bytes
//   mpi                               SMPI's function, by the selection that the run was started with
//   leader+mpi                        alltoall: bundles as in `leader`, exchanged by SMPI's MPI_Alltoall
//   leader+ring, leader+doubling      allgather: one leader for each node, messages around a ring or between
//                                     partners at doubling distances, while its mates unpack what has come
//   direct                            neighbours: a message for each edge, also within nodes
//   direct+computed                   the same, small blocks: a rank takes what its messages cost its CPU,
//   for
//                                     graphs whose messages are too many to simulate
//   bruck+copies                      alltoall: Bruck's algorithm with the copies that MPICH's has
//   sloav+phases                      alltoallv: sloav as its paper has it: the size of a message goes before
//                                     it, and what comes is copied to its element's segment
// The last seven stand for what papers and MPI libraries do. Thread safety: pure functions.
#pragma once
#include <optional>
#include <string>

#include "policy/policy.h"
#include "world.h"

namespace simulate {

struct Plan {
    coco::policy::Choice choice;  // of an algorithm of the library's; bcasts are cut, and scheduled, by size
    // Walked one after the other; with `inner`, MPI_Alltoall among the nodes' first ranks comes between, from
    // the first half of their scratch to the second.
    coco::schedule::Schedule first, second;
    bool inner = false;
    MPI_Comm leaders = MPI_COMM_NULL;  // for inner
    bool phases = false;               // of sloav+phases
    bool mpi = false;                  // the whole call is SMPI's
    const SetupCost* setup = nullptr;  // neighbours: of what had to be found out first; owned by World::setup
    bool messages_alone = false;       // of direct+computed
    std::string label;                 // of `default`: with what was chosen
};

// Returns: nothing if there is no such contender for the collective; `error` says why. Called by all ranks.
std::optional<Plan> make_plan(const std::string& name, World& world, int rank, std::string& error);

// The same for collectives among neighbours: neighbor_plan.cc.
std::optional<Plan> make_neighbor_plan(const std::string& name, World& world, int rank, std::string& error);
// Blocks above this go straight in combining, as in lib/exec/limits.h.
inline constexpr std::int64_t kCombinedBytes = 4096;

}  // namespace simulate
