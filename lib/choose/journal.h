// SPDX-License-Identifier: BSD-3-Clause
//
// What the communicators of this process have learned, for the report and for the next job: a lesson for each kind of cell, of
// the communicator that has made most calls. Written by choices.cc after each look, read by dispatch when MPI ends. Thread
// safety: any thread. Never fails.
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
    std::vector<std::int64_t> times_ns;    // of the last look at each; 0: never seen
    std::vector<Learner::Spread> spreads;  // likewise
    int incumbent = 0;                     // among the candidates
    std::uint64_t calls = 0, looks = 0, changes = 0;
    std::int64_t spent_ns = 0;
};

class Journal {
  public:
    void note(const policy::Facts& facts, const Cell& cell);
    std::vector<Lesson> lessons() const;

  private:
    mutable std::mutex lock_;
    std::vector<Lesson> lessons_;
};

}  // namespace coco::choose
