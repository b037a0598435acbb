// SPDX-License-Identifier: BSD-3-Clause
#include "choose/choices.h"

#include <algorithm>

#include "base/bits.h"
#include "base/hash.h"
#include "base/index.h"

namespace coco::choose {

bool runs_on(const algorithms::Algorithm& algorithm, algorithms::Collective collective, bool several_nodes) {
    return algorithm.one_node() != several_nodes || (is_neighbor(collective) && algorithm.one_node());
}

namespace {

// The first bcasts of a communicator go by the rules; then ranks compare their lengths, which takes a
// meeting.
constexpr std::uint64_t kBcastsByRules = 3000, kBcastsByRulesRestless = 16;
// The rule of cells whose calls go by something else than the policy.
constexpr int kNoRule = -2;

// The rules' choice, the MPI library's function, and what the rule names besides, if it runs here.
std::vector<policy::Choice> candidates_of(const policy::Policy& policy, const policy::Verdict& verdict,
                                          const policy::Facts& facts) {
    auto runs = [&](const policy::Choice& choice) {
        return choice.algorithm == nullptr || runs_on(*choice.algorithm, facts.collective, facts.nodes > 1);
    };
    std::vector<policy::Choice> all{verdict.choice};
    auto add = [&](const policy::Choice& choice) {
        if (all.size() < kCandidatesMost && runs(choice) && std::ranges::find(all, choice) == all.end())
            all.push_back(choice);
    };
    if (runs(verdict.choice)) add({});  // otherwise the MPI library has such calls already
    if (verdict.rule >= 0)
        for (const policy::Choice& also : policy.rules[base::index(verdict.rule)].also) add(also);
    return all;
}

void take(Choice& choice, const policy::Choice& taken) {
    choice.algorithm = taken.algorithm;
    choice.parameters = taken.parameters;
}

std::uint64_t bcasts_by_rules(const Learning& learning) {
    return learning.is_restless ? kBcastsByRulesRestless : kBcastsByRules;
}

// The blocks for which all is chosen as for these. (Empty ones may stand for blocks whose size nobody knows
// yet.)
policy::Range blocks_chosen_alike(const policy::Verdict& verdict, int size_class, std::uint64_t block_bytes) {
    const policy::Range alike = verdict.blocks.overlap_with(blocks_of(size_class));
    if (size_class < 0) return alike;
    return alike.overlap_with(block_bytes == 0 ? policy::Range{0, 0} : policy::Range{1, UINT64_MAX});
}

// Neighbours with blocks of their own sizes choose apart: then no rank knows of the others' candidates. Where
// the size of blocks is not known calls of one cell may be of any size, but for neighbours, whose blocks
// seldom change.
bool can_learn(const policy::Facts& facts, const policy::Verdict& verdict, const Cell& cell) {
    return !verdict.forced && !facts.block_is_own && (cell.size_class >= 0 || is_neighbor(facts.collective));
}

// The lessons of a cell. They go on from those of earlier communicators, if these are known.
std::unique_ptr<Lessons> lessons_for(const Cell& cell, const policy::Policy& policy,
                                     const policy::Verdict& verdict, const policy::Facts& facts,
                                     const Learning& learning) {
    std::vector<policy::Choice> candidates = candidates_of(policy, verdict, facts);
    Learner learner(base::number(candidates.size()), facts.crowded, learning.is_restless, cell.calls,
                    learning.agreement->now_ns());
    std::span<const std::int64_t> knowledge;
    if (cell.size_class >= 0)
        knowledge = find_knowledge(learning.agreement->told(), kind_of(facts, cell.size_class, cell.rule));
    if (knowledge.size() == Knowledge::size(candidates.size())) learner.go_on_from(knowledge);
    return std::make_unique<Lessons>(Lessons{facts, std::move(candidates), learner});
}

// Goes on learning with this call, which the cell has counted. Returns: the candidate to take.
Learner::Span go_on_learning(Cell& cell, const Learning& learning) {
    Learner& learner = cell.lessons->learner;
    if (learner.must_meet(cell.calls)) {
        std::span<std::int64_t> board = learner.board(learning.agreement->now_ns());
        if (!learning.agreement->agree(board)) {
            learner.ask_to_give_up();
            board = learner.board(learning.agreement->now_ns());
        }
        const std::uint64_t results = learner.known().results;
        learner.decide(cell.calls, board, learning.agreement->now_ns());
        if (learning.journal != nullptr && learner.known().results != results) learning.journal->note(cell);
    }
    return learner.span(cell.calls);
}

}  // namespace

std::uint64_t Choices::next_bound() {
    ++bounded_calls_;
    if (left_to_mpi_++ < bounded_seeing_.unseen) return largest_block_bytes_;
    left_to_mpi_ = 0;
    bounded_seeing_.note_seen();
    return 0;
}

std::uint64_t Choices::calls(algorithms::Collective collective) const {
    std::uint64_t calls = 0;
    for (const auto& cell : cells_)
        if (cell->collective == collective) calls += cell->calls;
    return calls;
}

const Choices::Rules& Choices::rules_for(const policy::Policy& policy, const policy::Facts& facts) {
    Rules& rules = of(facts.collective).rules;
    if (!rules.numbers || rules.degree != facts.degree) {
        rules.numbers = policy::rules_for(policy, facts);
        rules.ask_for_block = policy::ask_for_block(policy, *rules.numbers);
        rules.degree = facts.degree;
    }
    return rules;
}

bool Choices::goes_by_told_size(const policy::Policy& policy, const policy::Facts& facts,
                                const Learning& learning) {
    if (facts.nodes != 1 || (facts.collective != algorithms::Collective::alltoallv &&
                             facts.collective != algorithms::Collective::alltoallw))
        return false;
    return learning.is_on || rules_for(policy, facts).ask_for_block;
}

Cell& Choices::cell_for(const policy::Facts& facts, int rule, int size_class) {
    for (const auto& cell : cells_)
        if (cell->collective == facts.collective && cell->size_class == size_class && cell->rule == rule)
            return *cell;
    cells_.push_back(
        std::make_unique<Cell>(Cell{.collective = facts.collective, .size_class = size_class, .rule = rule}));
    return *cells_.back();
}

// Requires: this is a bcast, which is counted.
bool Choices::lengths_agree(const Learning& learning) {
    if (lengths_ == Lengths::unknown && calls(algorithms::Collective::bcast) >= bcasts_by_rules(learning)) {
        // Ranks that named other lengths have other cells.
        base::Hash print;
        for (const auto& cell : cells_)
            if (is_rooted(cell->collective))
                for (std::uint64_t fact : {static_cast<std::uint64_t>(cell->size_class),
                                           static_cast<std::uint64_t>(cell->rule), cell->calls})
                    print.add(fact);
        const auto mine = static_cast<std::int64_t>(print.value() >> 2);
        std::int64_t numbers[] = {mine, -mine, saw_other_length_ ? 1 : 0, 0};
        const bool agreed = learning.agreement->agree(numbers);
        lengths_ = agreed && numbers[0] == -numbers[1] && numbers[2] == 0 ? Lengths::alike : Lengths::unlike;
    }
    return lengths_ == Lengths::alike;
}

// Notes what is known as the communicator ends, so that the next one goes on from there.
void Choices::leave_lessons() {
    if (journal_ == nullptr) return;
    for (const auto& cell : cells_)
        if (cell->lessons != nullptr && !cell->lessons->learner.gave_up()) journal_->note(*cell);
}

// Puts another candidate in the place of the rule's choice for this call, which has been counted, and says
// how long that holds.
void Choices::learn(const policy::Policy& policy, const policy::Facts& facts, bool is_peek,
                    const Learning& learning) {
    const policy::Verdict& verdict = of(facts.collective).verdict;
    Choice& choice = of(facts.collective).choice;
    Cell& cell = *choice.cell;
    if (is_rooted(facts.collective) && !lengths_agree(learning)) {
        if (lengths_ == Lengths::unknown)
            choice.last_call = std::min(choice.last_call, bcasts_by_rules(learning) - 1);
        return;
    }
    if (is_peek || !can_learn(facts, verdict, cell)) return;
    if (cell.calls == 1) {  // most cells with one call get no other
        choice.last_of_cell = 1;
        return;
    }
    if (cell.lessons == nullptr) cell.lessons = lessons_for(cell, policy, verdict, facts, learning);
    if (is_rooted(facts.collective) && saw_other_length_) cell.lessons->learner.ask_to_give_up();
    journal_ = learning.journal;
    const Learner::Span span = go_on_learning(cell, learning);
    if (span.candidate != 0) take(choice, cell.lessons->candidates[base::index(span.candidate)]);
    choice.last_of_cell = span.last_call;
    choice.is_measured = span.is_measured;
}

// Takes a call now and then that would be left to the MPI library: the first one where no size is known yet,
// then more and more seldom. Without them a communicator would stay for ever at a size that is left to MPI.
// Requires: the cell goes by told sizes and has counted the call.
void Choices::see_sizes(const policy::Policy& policy, policy::Facts facts) {
    OfCollective& one = of(facts.collective);
    Choice& choice = one.choice;
    Cell& cell = *choice.cell;
    facts.calls = calls(facts.collective);
    if (cell.see_decided_at != one.told_changes) {
        cell.see_decided_at = one.told_changes;
        one.seeing.note_change(facts.calls);
        cell.see_after = cell.size_class < 0 ? 0 : cell.calls - 1 + one.seeing.unseen;
    }
    if (cell.calls <= cell.see_after || choice.is_measured) {
        choice.last_of_cell = std::min(choice.last_of_cell, std::max(cell.calls, cell.see_after));
        return;
    }
    cell.see_after = cell.calls + one.seeing.unseen;
    one.seeing.note_seen();
    take(choice, policy::select_to_see(policy, *rules_for(policy, facts).numbers, facts).choice);
    choice.last_of_cell = cell.calls;
}

const Choice& Choices::choose(const policy::Policy& policy, policy::Facts facts, bool bounded,
                              const Learning& learning) {
    OfCollective& one = of(facts.collective);
    policy::Verdict& verdict = one.verdict;
    Choice& choice = one.choice;
    if (bounded) facts.block_bytes = next_bound();
    const bool by_told_size = goes_by_told_size(policy, facts, learning);
    if (by_told_size && one.told_class >= 0)
        facts.block_bytes = std::uint64_t{1} << std::min(one.told_class, 62);
    const std::uint64_t block_bytes = facts.block_bytes.value_or(0);
    // A call over several nodes that is taken to see how large blocks are is of no size yet.
    const bool is_peek = bounded && block_bytes == 0;
    const int size_class =
        facts.block_bytes && !facts.block_is_own ? base::size_class(*facts.block_bytes) : -1;
    const bool is_like_last = choice.blocks.contains(block_bytes) && choice.cell->size_class == size_class;
    // Counting takes a while, and is for rules that ask for the number of the call.
    if (!is_like_last || verdict.last_call != UINT64_MAX) facts.calls = calls(facts.collective) + 1;
    if (!is_like_last || facts.calls > verdict.last_call) {
        verdict = verdict_for(policy, facts, is_peek);
        // Calls that are compared with what a cell has learned are none of its own.
        const bool is_cells_own = one.instead.kind == Instead::Kind::nothing;
        choice.by_force = verdict.forced;
        choice.cell = &cell_for(facts, is_cells_own ? verdict.rule : kNoRule, size_class);
        choice.cell->goes_by_told_size = by_told_size;
        choice.blocks = blocks_chosen_alike(verdict, size_class, block_bytes);
    }
    ++choice.cell->calls;
    take(choice, verdict.choice);
    choice.last_call = verdict.last_call;
    choice.last_of_cell = UINT64_MAX;
    choice.is_measured = false;
    if (learning.is_on && one.instead.kind == Instead::Kind::nothing) learn(policy, facts, is_peek, learning);
    if (by_told_size && choice.algorithm == nullptr && !choice.by_force) see_sizes(policy, facts);
    // A challenger's calls tell sizes, too, but say nothing of a change.
    if (bounded && block_bytes != 0 && choice.algorithm != nullptr && !choice.is_measured)
        bounded_seeing_.note_change(bounded_calls_);
    return choice;
}

policy::Verdict Choices::verdict_for(const policy::Policy& policy, const policy::Facts& facts, bool is_peek) {
    const Instead& instead = of(facts.collective).instead;
    if (instead.kind == Instead::Kind::choice) return {.choice = instead.choice, .forced = true};
    const std::vector<int>& rules = *rules_for(policy, facts).numbers;
    const policy::Verdict verdict = policy::select(policy, rules, facts);
    // What is left to the MPI library shows nothing.
    const bool is_blind = is_peek && verdict.choice.algorithm == nullptr && !verdict.forced;
    return is_blind ? policy::select_to_see(policy, rules, facts) : verdict;
}

void Choices::put_instead(algorithms::Collective collective, const Instead& instead) {
    OfCollective& one = of(collective);
    one.instead = instead;
    ++one.told_changes;
    one.choice = {};
}

void Choices::note_largest_block(bool refused, std::uint64_t bytes) {
    constexpr std::uint64_t kBeyondRules = std::uint64_t{1} << 62;
    largest_block_bytes_ = refused ? kBeyondRules : bytes;
    left_to_mpi_ = 0;
}

}  // namespace coco::choose
