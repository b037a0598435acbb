// SPDX-License-Identifier: BSD-3-Clause
//
// The choices for the calls of one communicator, and for how many calls each holds: the policy's verdicts,
// remembered by collective, what was learned in its place, and the bounds by which is chosen for forms whose
// block sizes no rank knows.
//
// Called by dispatch before a call, and by exec with what a call has found out. Thread safety: that of the
// communicator. Invariant: all ranks of the communicator hold the same, since they ask at the same calls and
// are told the same. Never fails.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/index.h"
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
    // The sizes of blocks for which it is the choice; of no meaning where no rank knows the size.
    policy::Range blocks = {1, 0};
};

// The means by which all ranks of a communicator agree, and what they agree on from the beginning.
class Agreement {
  public:
    // Replaces each number by the largest on any rank, and the last one by how long it takes to agree. All
    // ranks call it in the same call. Returns: false: it failed, and the numbers are what they were.
    virtual bool agree(std::span<std::int64_t> numbers) = 0;
    virtual std::int64_t now_ns() = 0;
    // What the journal of the communicator's first rank told when it was set up, on all ranks the same:
    // journal.h.
    virtual std::span<const std::int64_t> told() = 0;

  protected:
    ~Agreement() = default;
};

struct Learning {
    bool is_on = false;
    bool is_restless = false;  // learner.h
    Agreement* agreement = nullptr;
    Journal* journal = nullptr;  // null: nobody wants to know; else it lives longer than the communicators
};

// Whether an algorithm can run on so many nodes. (Neighbours' blocks move within nodes and as messages
// between them, by the same algorithms.)
bool runs_on(const algorithms::Algorithm& algorithm, algorithms::Collective collective, bool several_nodes);

// What stands in the place of the policy's verdicts on one collective, for those who compare: coco tune and
// the benchmarks.
struct Instead {
    enum class Kind : std::uint8_t {
        nothing,  // the policy's verdicts hold
        rules,    // so they do, and nothing is learned
        choice    // this one has all calls
    };
    Kind kind = Kind::nothing;
    policy::Choice choice = {};
};

class Choices {
  public:
    Choices() = default;
    Choices(Choices&&) = default;
    Choices& operator=(Choices&&) = default;
    ~Choices() { leave_lessons(); }
    // Chooses for a call, and counts it. facts: all but the calls. bounded: no rank knows the block size, but
    // all know a bound that earlier calls told; facts.block_bytes is empty then. Requires: all ranks make the
    // call.
    const Choice& choose(const policy::Policy& policy, policy::Facts facts, bool bounded,
                         const Learning& learning);
    // The calls of a collective since the communicator was set up. (A call for which a choice is known to
    // hold is counted by its cell alone.)
    std::uint64_t calls(algorithms::Collective collective) const;
    // All cells that have been called.
    std::span<const std::unique_ptr<Cell>> cells() const { return cells_; }

    // Tells the largest block of a call for which a bound is kept; all ranks tell the same. refused: some
    // rank could not take part and is likely to refuse again, so that the next calls are for MPI, as with
    // blocks larger than any rule asks for.
    void note_largest_block(bool refused, std::uint64_t bytes);

    // Tells the size class of the largest block that any rank has sent in a call whose cell goes by that.
    void note_size_class(algorithms::Collective collective, int size_class) {
        OfCollective& one = of(collective);
        if (one.told_class != size_class) ++one.told_changes;
        one.told_class = size_class;
    }
    // Whether a choice for a call of this cell is still one for the next: the size told last may lead to
    // another cell.
    bool leads_to(const Cell& cell) const {
        return !cell.goes_by_told_size || of_[base::index(cell.collective)].told_class == cell.size_class;
    }
    // Tells that the root of a bcast named another length than this rank: what ranks choose by their lengths
    // they may choose unlike, so that nothing shall be learned.
    void note_other_length() { saw_other_length_ = true; }

    // From the next call on. What was learned stays, and goes on from there when nothing stands in its place
    // any more. Requires: all ranks do so between the same two calls.
    void put_instead(algorithms::Collective collective, const Instead& instead);

    // Makes this as for a communicator of the same members that nobody has called on yet. Nobody may hold a
    // cell.
    void forget() {
        leave_lessons();
        Choices fresh;
        for (int c = 0; c < algorithms::kCollectives; ++c) std::swap(fresh.of_[c].rules, of_[c].rules);
        *this = std::move(fresh);
    }

  private:
    // How often a call is taken to see how large blocks are, where calls are left to MPI, which tell nothing:
    // more seldom the longer it goes on, as such a call may cost five of MPI's; and soon again where sizes
    // have changed, unless they change so often that this would be dear.
    struct Seeing {
        static constexpr std::uint64_t kLeastUnseen = 32, kMostUnseen = 1024;
        std::uint64_t unseen = kLeastUnseen;  // calls that are left before the next one is taken
        std::uint64_t seen_soon = 0;          // calls that were taken behind fewer than kMostUnseen

        void note_change(std::uint64_t calls) {
            if (seen_soon <= kLeastUnseen / 4 + calls / kMostUnseen) unseen = kLeastUnseen;
        }
        void note_seen() {
            if (unseen < kMostUnseen) ++seen_soon;
            unseen = std::min(2 * unseen, kMostUnseen);
        }
    };
    // The rules for a collective that match but for their conditions on the block and the call, whether one
    // asks for the block, and the degree by which they were found. The policy and all other facts that count
    // are those of the communicator.
    struct Rules {
        std::optional<std::vector<int>> numbers = std::nullopt;
        bool ask_for_block = false;
        std::optional<std::uint64_t> degree = std::nullopt;
    };
    struct OfCollective {
        policy::Verdict verdict = {.choice = {}, .last_call = 0};  // the last one
        Choice choice = {};  // by that, or what was learned in its place
        Rules rules;
        Instead instead;
        int told_class = -1;
        // How often the told size, or what stands instead of the rules, has changed: all ranks count the
        // same, whichever of them remember a choice. (A remembered choice that is left to MPI ends before
        // that: only a call that is taken to see, or a challenger's, tells a size there, and all choices made
        // before end with that call.)
        std::uint64_t told_changes = 1;
        Seeing seeing;  // where a call goes by the size that was told last
    };
    OfCollective& of(algorithms::Collective collective) { return of_[base::index(collective)]; }

    // The bound for the next call.
    std::uint64_t next_bound();
    // Whether the choice goes by the largest block of the call before: no rank knows this call's, and
    // somebody asks.
    bool goes_by_told_size(const policy::Policy& policy, const policy::Facts& facts,
                           const Learning& learning);
    Cell& cell_for(const policy::Facts& facts, int rule, int size_class);
    void see_sizes(const policy::Policy& policy, policy::Facts facts);
    bool lengths_agree(const Learning& learning);
    void leave_lessons();
    void learn(const policy::Policy& policy, const policy::Facts& facts, bool is_peek,
               const Learning& learning);
    const Rules& rules_for(const policy::Policy& policy, const policy::Facts& facts);
    policy::Verdict verdict_for(const policy::Policy& policy, const policy::Facts& facts, bool is_peek);

    OfCollective of_[algorithms::kCollectives];
    std::vector<std::unique_ptr<Cell>> cells_;
    Journal* journal_ = nullptr;  // that of the last call that was learned from
    // Whether all ranks have named the same lengths in the first bcasts, as MPI demands, though most
    // libraries let others pass.
    enum class Lengths : std::uint8_t { unknown, alike, unlike } lengths_ = Lengths::unknown;
    bool saw_other_length_ = false;
    std::uint64_t largest_block_bytes_ = 0;  // in the last bounded call that ran, on any rank
    std::uint64_t left_to_mpi_ = 0;          // bounded calls since then
    std::uint64_t bounded_calls_ = 0;
    Seeing bounded_seeing_;
};

}  // namespace coco::choose
