// SPDX-License-Identifier: BSD-3-Clause
#include "choose/choices.h"

#include <algorithm>

#include "base/bits.h"
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
        if (all.size() < kCandidatesMost && runs(choice) &&
            std::ranges::find(all, choice) == all.end())
            all.push_back(choice);
    };
    if (runs(verdict.choice)) add({});  // otherwise the MPI library has such calls already
    if (verdict.rule >= 0)
        for (const policy::Choice& also : policy.rules[base::index(verdict.rule)].also) add(also);
    return all;
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

// Goes on from what earlier communicators have learned in cells of the same kind, if that is known.
void go_on_from_earlier(Cell& cell, const Learning& learning) {
    Lessons& lessons = *cell.lessons;
    if (cell.size_class < 0) return;
    const std::span knowledge =
        find_knowledge(learning.agreement->told(), kind_of(lessons.facts, cell.size_class, cell.rule));
    if (knowledge.size() == Knowledge::size(lessons.candidates.size()))
        lessons.learner.go_on_from(knowledge);
}

// Goes on learning with this call, which the cell has counted. Returns: the candidate to take.
Learner::Span go_on_learning(Cell& cell, const policy::Facts& facts, const Learning& learning) {
    Learner& learner = cell.lessons->learner;
    if (learner.must_meet(cell.calls)) {
        std::span<std::int64_t> board = learner.board(learning.agreement->now_ns());
        if (!learning.agreement->agree(board)) {
            learner.ask_to_give_up();
            board = learner.board(learning.agreement->now_ns());
        }
        const std::uint64_t results = learner.known().results;
        learner.decide(cell.calls, board, learning.agreement->now_ns());
        if (learning.journal != nullptr && learner.known().results != results)
            learning.journal->note(facts, cell);
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

std::span<const int> Choices::rules_for(const policy::Policy& policy, const policy::Facts& facts) {
    Rules& rules = rules_[base::index(facts.collective)];
    if (!rules.numbers || rules.degree != facts.degree) {
        rules.numbers = policy::rules_for(policy, facts);
        rules.ask_for_block = policy::ask_for_block(policy, *rules.numbers);
        rules.degree = facts.degree;
    }
    return *rules.numbers;
}

bool Choices::goes_by_told_size(const policy::Policy& policy, const policy::Facts& facts,
                                const Learning& learning) {
    if (facts.nodes != 1 || (facts.collective != algorithms::Collective::alltoallv &&
                             facts.collective != algorithms::Collective::alltoallw))
        return false;
    static_cast<void>(rules_for(policy, facts));
    return learning.is_on || rules_[base::index(facts.collective)].ask_for_block;
}

int Choices::size_class_of(const policy::Facts& facts) {
    return facts.block_bytes && !facts.block_is_own ? base::size_class(*facts.block_bytes) : -1;
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
        std::uint64_t print = 0;
        for (const auto& cell : cells_)
            if (is_rooted(cell->collective))
                for (std::uint64_t fact : {static_cast<std::uint64_t>(cell->size_class),
                                           static_cast<std::uint64_t>(cell->rule), cell->calls})
                    print = (print ^ fact) * 0x100000001B3u;
        const auto mine = static_cast<std::int64_t>(print >> 2);
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
        if (cell->lessons != nullptr && !cell->lessons->learner.gave_up())
            journal_->note(cell->lessons->facts, *cell);
}

// Puts another candidate in the place of the rule's choice for this call, which has been counted, and says
// how long that holds.
void Choices::learn(Choice& choice, const policy::Policy& policy, const policy::Facts& facts,
                    const policy::Verdict& verdict, bool is_peek, const Learning& learning) {
    constexpr std::uint64_t kLessonsFrom = 2;
    Cell& cell = *choice.cell;
    choice.last_call = verdict.last_call;
    choice.last_of_cell = UINT64_MAX;
    choice.is_measured = false;
    if (is_rooted(facts.collective) && !lengths_agree(learning)) {
        if (lengths_ == Lengths::unknown)
            choice.last_call = std::min(choice.last_call, bcasts_by_rules(learning) - 1);
        return;
    }
    if (is_peek || !can_learn(facts, verdict, cell)) return;
    if (cell.lessons == nullptr && cell.calls >= kLessonsFrom) {
        cell.lessons =
            std::make_unique<Lessons>(facts, candidates_of(policy, verdict, facts), learning.is_restless,
                                      cell.calls, learning.agreement->now_ns());
        go_on_from_earlier(cell, learning);
    }
    if (cell.lessons == nullptr) {
        choice.last_of_cell = kLessonsFrom - 1;
        return;
    }
    if (is_rooted(facts.collective) && saw_other_length_) cell.lessons->learner.ask_to_give_up();
    journal_ = learning.journal;
    const Learner::Span span = go_on_learning(cell, facts, learning);
    const policy::Choice& taken =
        span.candidate == 0 ? verdict.choice : cell.lessons->candidates[base::index(span.candidate)];
    choice.algorithm = taken.algorithm;
    choice.parameters = taken.parameters;
    choice.last_of_cell = span.last_call;
    choice.is_measured = span.is_measured;
}

// Takes a call now and then that would be left to the MPI library: the first one where no size is known yet,
// then more and more seldom. Without them a communicator would stay for ever at a size that is left to MPI.
// Requires: the cell goes by told sizes and has counted the call.
void Choices::see_sizes(Choice& choice, const policy::Policy& policy, policy::Facts facts) {
    Cell& cell = *choice.cell;
    Seeing& seeing = told_seeing_[base::index(facts.collective)];
    const std::uint64_t changes = told_changes_[base::index(facts.collective)];
    if (cell.see_decided_at != changes) {
        cell.see_decided_at = changes;
        seeing.note_change(calls(facts.collective));
        cell.see_after = cell.size_class < 0 ? 0 : cell.calls - 1 + seeing.unseen;
    }
    if (cell.calls <= cell.see_after || choice.is_measured) {
        choice.last_of_cell = std::min(choice.last_of_cell, std::max(cell.calls, cell.see_after));
        return;
    }
    cell.see_after = cell.calls + seeing.unseen;
    seeing.note_seen();
    facts.calls = calls(facts.collective);
    const policy::Verdict verdict = policy::select_to_see(policy, rules_for(policy, facts), facts);
    choice.algorithm = verdict.choice.algorithm;
    choice.parameters = verdict.choice.parameters;
    choice.last_of_cell = cell.calls;
}

const Choice& Choices::choose(const policy::Policy& policy, policy::Facts facts, bool bounded,
                              const Learning& learning) {
    const std::size_t collective = base::index(facts.collective);
    Memo& memo = memo_[collective];
    const Instead& instead = instead_[collective];
    if (bounded) facts.block_bytes = next_bound();
    const bool by_told_size = goes_by_told_size(policy, facts, learning);
    if (const int told = told_class_[collective]; by_told_size && told >= 0)
        facts.block_bytes = std::uint64_t{1} << std::min(told, 62);
    const std::uint64_t block_bytes = facts.block_bytes.value_or(0);
    // A call over several nodes that is taken to see how large blocks are is of no size yet.
    const bool is_peek = bounded && block_bytes == 0;
    const int size_class = size_class_of(facts);
    Choice& choice = memo.choice;
    const bool holds_for_good = memo.verdict.last_call == UINT64_MAX;
    const bool is_of_memo = choice.blocks.contains(block_bytes) && choice.cell->size_class == size_class;
    if (!is_of_memo || !holds_for_good) facts.calls = calls(facts.collective) + 1;
    if (!is_of_memo || (!holds_for_good && facts.calls > memo.verdict.last_call)) {
        memo.verdict = verdict_for(policy, facts, is_peek);
        // Calls that are compared with what a cell has learned are none of its own.
        const bool is_cells_own = instead.kind == Instead::Kind::nothing;
        choice = {memo.verdict.choice.algorithm,
                  memo.verdict.choice.parameters,
                  memo.verdict.forced,
                  memo.verdict.last_call,
                  &cell_for(facts, is_cells_own ? memo.verdict.rule : kNoRule, size_class),
                  UINT64_MAX,
                  false,
                  blocks_chosen_alike(memo.verdict, size_class, block_bytes)};
        choice.cell->goes_by_told_size = by_told_size;
    }
    ++choice.cell->calls;
    if (by_told_size) {  // the last call may have been taken to see
        choice.algorithm = memo.verdict.choice.algorithm;
        choice.parameters = memo.verdict.choice.parameters;
        choice.last_of_cell = UINT64_MAX;
    }
    if (learning.is_on && instead.kind == Instead::Kind::nothing)
        learn(choice, policy, facts, memo.verdict, is_peek, learning);
    if (by_told_size && choice.algorithm == nullptr && !choice.by_force) see_sizes(choice, policy, facts);
    // A challenger's calls tell sizes, too, but say nothing of a change.
    if (bounded && block_bytes != 0 && choice.algorithm != nullptr && !choice.is_measured)
        bounded_seeing_.note_change(bounded_calls_);
    return choice;
}

policy::Verdict Choices::verdict_for(const policy::Policy& policy, const policy::Facts& facts, bool is_peek) {
    const Instead& instead = instead_[base::index(facts.collective)];
    if (instead.kind == Instead::Kind::choice) return {.choice = instead.choice, .forced = true};
    const std::span<const int> rules = rules_for(policy, facts);
    const policy::Verdict verdict = policy::select(policy, rules, facts);
    // What is left to the MPI library shows nothing.
    const bool is_blind = is_peek && verdict.choice.algorithm == nullptr && !verdict.forced;
    return is_blind ? policy::select_to_see(policy, rules, facts) : verdict;
}

void Choices::put_instead(algorithms::Collective collective, const Instead& instead) {
    const std::size_t number = base::index(collective);
    instead_[number] = instead;
    ++told_changes_[number];
    memo_[number] = {};
}

void Choices::note_largest_block(bool refused, std::uint64_t bytes) {
    constexpr std::uint64_t kBeyondRules = std::uint64_t{1} << 62;
    largest_block_bytes_ = refused ? kBeyondRules : bytes;
    left_to_mpi_ = 0;
}

}  // namespace coco::choose
