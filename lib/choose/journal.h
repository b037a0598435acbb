// SPDX-License-Identifier: BSD-3-Clause
//
// What the communicators of this process have learned, for the report, for the next job, and for later
// communicators: a lesson for each kind of cell, of the communicator that has compared most and, of several
// such, made most calls; what those have done from whose knowledge it went on is counted, too. Written by
// choices.cc after each look and as a communicator ends; read by comm as a communicator is set up, and by
// dispatch when MPI ends. Thread safety: any thread. Never fails.
#pragma once
#include <mutex>
#include <span>
#include <vector>

#include "choose/cell.h"
#include "policy/policy.h"

namespace coco::choose {

struct Lesson {
    std::uint64_t kind;    // kind_of() of the members below
    policy::Facts facts;   // of one of the calls
    int size_class, rule;  // as Cell has them
    std::vector<policy::Choice> candidates;
    Knowledge knowledge = {};
    std::uint64_t noted = 0;  // what was noted later has a larger number
};

// The kind of a cell of a communicator: equal for cells that can go on from one another's knowledge.
std::uint64_t kind_of(const policy::Facts& facts, int size_class, int rule);
// Returns: what was told of a kind; nothing if it was not.
std::span<const std::int64_t> find_knowledge(std::span<const std::int64_t> told, std::uint64_t kind);

class Journal {
  public:
    // Requires: the cell has lessons.
    void note(const Cell& cell);
    // Writes what is known of communicators of this arrangement (nodes, ranks of a node, domains, crowded or
    // not), of those kinds that were noted last where there is too little room. Requires: room for a number.
    void tell(const policy::Facts& arrangement, std::span<std::int64_t> room);
    // For benchmarks.
    void forget();
    // Those of cells in which candidates were compared.
    std::vector<Lesson> lessons() const;

  private:
    mutable std::mutex lock_;
    std::vector<Lesson> lessons_;
    std::uint64_t noted_ = 0;
};

}  // namespace coco::choose
