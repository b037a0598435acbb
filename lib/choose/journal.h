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
    policy::Facts facts;  // of one of the calls
    int size_class = -1;  // as Cell has it
    int rule = -1;
    std::vector<policy::Choice> candidates;
    std::vector<std::int64_t> times_ns;    // of the last look at each; 0: there was none
    std::vector<Learner::Spread> spreads;  // of its two laps
    int incumbent = 0;                     // among the candidates
    std::uint64_t calls = 0, looks = 0, changes = 0, results = 0;
    std::int64_t spent_ns = 0;
    std::vector<std::int64_t> knowledge = {};  // the learner's
    std::uint64_t noted = 0;                   // what was noted later has a larger number
};

// Whether the facts are of communicators with as many nodes, ranks of a node and domains, crowded or not.
bool are_arranged_alike(const policy::Facts& one, const policy::Facts& other);
// The kind of a cell of a communicator: odd, and equal for cells that can go on from one another's knowledge.
std::uint64_t kind_of(const policy::Facts& facts, int size_class, int rule);
// Returns: what was told of a kind; nothing if it was not.
std::span<const std::int64_t> find_knowledge(std::span<const std::int64_t> told, std::uint64_t kind);

class Journal {
  public:
    // Requires: the cell has lessons.
    void note(const policy::Facts& facts, const Cell& cell);
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
