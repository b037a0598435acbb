// SPDX-License-Identifier: BSD-3-Clause
//
// The choices for the calls of one communicator, and for how many calls each holds: the policy's verdicts,
// remembered by collective, what was learned in its place, and the bounds by which is chosen for forms whose block sizes no
// rank knows.
//
// Called by dispatch before a call, and by exec with what a call has found out. Thread safety: that of the
// communicator. Invariant: all ranks of the communicator hold the same, since they ask at the same calls and are
// told the same. Never fails.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "choose/cell.h"
#include "choose/journal.h"
#include "policy/policy.h"

namespace coco::choose {

struct Choice {
    const algorithms::Algorithm* algorithm = nullptr;  // null: mpi
    algorithms::Parameters parameters = {};
    bool by_force = false;
    std::uint64_t last_call = 0;     // the last call of this collective that it holds for
    Cell* cell = nullptr;            // the call's, which lives as long as the communicator
    std::uint64_t last_of_cell = 0;  // the last of the cell's calls that it holds for
    bool is_measured = false;        // the cell shall note when each such call begins and ends
};

// The means by which all ranks of a communicator agree.
class Agreement {
  public:
    // Replaces each number by the largest on any rank. All ranks call it in the same call.
    virtual void agree(std::span<std::int64_t> numbers) = 0;

  protected:
    ~Agreement() = default;
};

struct Learning {
    bool is_on = false;
    bool is_restless = false;  // learner.h
    Agreement* agreement = nullptr;
    Journal* journal = nullptr;  // null: nobody wants to know
};

class Choices {
  public:
    // Chooses for a call, and counts it. facts: all but the calls. bounded: no rank knows the block size, but all
    // know a bound that earlier calls told; facts.block_bytes is empty then. Requires: all ranks make the call.
    const Choice& choose(const policy::Policy& policy, policy::Facts facts, bool bounded,
                         const Learning& learning);
    // The calls of a collective since the communicator was set up. (A call for which a choice is known to hold is counted by
    // its cell alone.)
    std::uint64_t calls(algorithms::Collective collective) const;
    // All cells that have been called.
    std::span<const std::unique_ptr<Cell>> cells() const { return cells_; }

    // Tells the largest block of a call for which a bound is kept; all ranks tell the same. refused: some rank could
    // not take part and is likely to refuse again, so that the next calls are for MPI, as with blocks larger than
    // any rule asks for.
    void note_largest_block(bool refused, std::uint64_t bytes);

    // Makes this as for a communicator that nobody has called on yet. Nobody may hold a cell.
    void forget() { *this = {}; }

  private:
    static constexpr std::uint32_t kLeastUnseen = 32, kMostUnseen = 1024;

    // The bound for the next call. Calls left to MPI tell nothing: now and then a call is taken to see, and more
    // seldom the longer it goes on, as such a call may cost five of MPI's.
    std::uint64_t next_bound();
    Cell& cell_for(const policy::Facts& facts, const policy::Verdict& verdict);

    struct Memo {
        std::uint64_t block_bytes = UINT64_MAX - 1;
        policy::Verdict verdict = {.choice = {}, .last_call = 0};
        Choice choice = {};
    };
    Memo memo_[algorithms::kCollectives];  // the last verdict for each collective
    std::vector<std::unique_ptr<Cell>> cells_;
    std::uint64_t largest_block_bytes_ = 0;      // in the last bounded call that ran, on any rank
    std::uint32_t left_to_mpi_ = 0;              // bounded calls since then
    std::uint32_t calls_unseen_ = kLeastUnseen;  // as many may be left before one is taken to see
};

}  // namespace coco::choose
