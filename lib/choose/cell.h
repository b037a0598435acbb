// SPDX-License-Identifier: BSD-3-Clause
//
// The calls of one collective on one communicator that are chosen for alike: by the same rule, with blocks of
// about one size. What is learned is learned for a cell. Called by choices.cc, and by dispatch, which counts
// and notes the calls that repeat earlier ones. Thread safety: that of the communicator. Never fails.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "choose/learner.h"
#include "policy/policy.h"

namespace coco::choose {

// The sizes of a class of blocks; all sizes for -1.
inline policy::Range blocks_of(int size_class) {
    if (size_class < 0) return {};
    if (size_class == 0) return {0, 1};
    return {(std::uint64_t{1} << (size_class - 1)) + 1,
            size_class < 64 ? std::uint64_t{1} << size_class : UINT64_MAX};
}

// What a cell has learned, from which candidates, and of which kind it is.
struct Lessons {
    policy::Facts facts;
    std::vector<policy::Choice> candidates;
    Learner learner;
};

struct Cell {
    algorithms::Collective collective;
    int size_class;  // of the blocks (bits.h); -1: no rank knows their size
    int rule;        // of the policy; negative: none
    // The size is that of the largest block of the call before, which a call's ranks tell one another.
    bool goes_by_told_size = false;
    std::uint64_t calls = 0;
    // Where told sizes lead to the MPI library's function, whose calls tell none: the number of the cell's
    // last call before one is taken to see, and how often the told size had changed when that was decided.
    std::uint64_t see_after = 0, see_decided_at = 0;
    std::unique_ptr<Lessons> lessons = nullptr;  // null: nothing is learned here, or not yet

    // Notes the call under way, which is measured, by a clock of this process's.
    void note(std::uint64_t begin_ns, std::uint64_t end_ns) {
        lessons->learner.note(calls, static_cast<std::int64_t>(begin_ns), static_cast<std::int64_t>(end_ns));
    }
};

}  // namespace coco::choose
