// SPDX-License-Identifier: BSD-3-Clause
#include "choose/choices.h"

#include <algorithm>
#include <bit>

namespace coco::choose {
namespace {

// Of a bcast the root's length counts, which others may not know: all have one cell, whatever they name.
int size_class_of(const policy::Facts& facts) {
    if (!facts.block_bytes || facts.block_is_own || is_rooted(facts.collective)) return -1;
    return *facts.block_bytes <= 1 ? 0 : std::bit_width(*facts.block_bytes - 1);
}

Learner::Clocks clocks_of(const policy::Facts& facts) {
    if (is_rooted(facts.collective)) return Learner::Clocks::stretches;
    return facts.nodes == 1 ? Learner::Clocks::common : Learner::Clocks::apart;
}

// The rules' choice, the MPI library's function, and what the rule names besides; in a bcast many rules are one candidate.
std::vector<policy::Choice> candidates_of(const policy::Policy& policy, const policy::Verdict& verdict,
                                          algorithms::Collective collective) {
    std::vector<policy::Choice> all{verdict.choice};
    auto add = [&](const policy::Choice& choice) {
        if (all.size() < Learner::kCandidatesMost && std::ranges::find(all, choice) == all.end())
            all.push_back(choice);
    };
    // Other lengths have other rules.
    if (is_rooted(collective)) return {verdict.choice, {}};
    add({});
    if (verdict.rule >= 0)
        for (const policy::Choice& also : policy.rules[static_cast<std::size_t>(verdict.rule)].also)
            add(also);
    return all;
}

// Neighbours with blocks of their own sizes choose apart: then no rank knows of the others' candidates.
bool can_learn(const policy::Facts& facts, const policy::Verdict& verdict) {
    return !verdict.forced && !facts.block_is_own;
}

// Goes on learning with this call, which the cell has counted. Returns: the candidate to take.
Learner::Span learn(Cell& cell, const policy::Facts& facts, const Learning& learning) {
    Learner& learner = cell.lessons->learner;
    if (learner.must_agree(cell.calls)) {
        learning.agreement->agree(learner.board());
        learner.decide(cell.calls);
        if (learning.journal != nullptr) learning.journal->note(facts, cell);
    }
    return learner.span(cell.calls);
}

}  // namespace

std::uint64_t Choices::next_bound() {
    if (left_to_mpi_++ < calls_unseen_) return largest_block_bytes_;
    left_to_mpi_ = 0;
    calls_unseen_ = std::min(2 * calls_unseen_, kMostUnseen);
    return 0;
}

std::uint64_t Choices::calls(algorithms::Collective collective) const {
    std::uint64_t calls = 0;
    for (const auto& cell : cells_)
        if (cell->collective == collective) calls += cell->calls;
    return calls;
}

Cell& Choices::cell_for(const policy::Facts& facts, const policy::Verdict& verdict) {
    const int size_class = size_class_of(facts), rule = is_rooted(facts.collective) ? -1 : verdict.rule;
    for (const auto& cell : cells_)
        if (cell->collective == facts.collective && cell->size_class == size_class && cell->rule == rule)
            return *cell;
    cells_.push_back(
        std::make_unique<Cell>(Cell{.collective = facts.collective, .size_class = size_class, .rule = rule}));
    return *cells_.back();
}

const Choice& Choices::choose(const policy::Policy& policy, policy::Facts facts, bool bounded,
                              const Learning& learning) {
    const int collective = static_cast<int>(facts.collective);
    Memo& memo = memo_[collective];
    if (bounded) facts.block_bytes = next_bound();
    const std::uint64_t block_bytes = facts.block_bytes.value_or(0);
    Choice& choice = memo.choice;
    const bool holds_for_good = memo.verdict.last_call == UINT64_MAX;
    if (memo.block_bytes != block_bytes || !holds_for_good) facts.calls = calls(facts.collective) + 1;
    if (memo.block_bytes != block_bytes || (!holds_for_good && facts.calls > memo.verdict.last_call)) {
        memo.block_bytes = block_bytes;
        memo.verdict = policy::select(policy, facts);
        choice = {memo.verdict.choice.algorithm, memo.verdict.choice.parameters, memo.verdict.forced,
                  memo.verdict.last_call,        &cell_for(facts, memo.verdict), UINT64_MAX};
    }
    Cell& cell = *choice.cell;
    ++cell.calls;
    if (learning.is_on) {
        constexpr std::uint64_t kLessonsFrom = 2;
        if (cell.calls == kLessonsFrom && can_learn(facts, memo.verdict))
            cell.lessons = std::make_unique<Lessons>(candidates_of(policy, memo.verdict, facts.collective),
                                                     clocks_of(facts), learning.is_restless);
        choice.last_of_cell = cell.calls < kLessonsFrom ? kLessonsFrom - 1 : UINT64_MAX;
        if (cell.lessons != nullptr) {
            const Learner::Span span = learn(cell, facts, learning);
            const policy::Choice& taken =
                span.candidate == 0 ? memo.verdict.choice
                                    : cell.lessons->candidates[static_cast<std::size_t>(span.candidate)];
            choice.algorithm = taken.algorithm;
            choice.parameters = taken.parameters;
            choice.last_of_cell = span.last_call;
            choice.is_measured = span.is_measured;
        }
    }
    if (bounded && block_bytes != 0 && choice.algorithm != nullptr) calls_unseen_ = kLeastUnseen;
    return choice;
}

void Choices::note_largest_block(bool refused, std::uint64_t bytes) {
    constexpr std::uint64_t kBeyondRules = std::uint64_t{1} << 62;
    largest_block_bytes_ = refused ? kBeyondRules : bytes;
    left_to_mpi_ = 0;
}

}  // namespace coco::choose
