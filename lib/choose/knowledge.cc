// SPDX-License-Identifier: BSD-3-Clause
//
// How what a learner knows passes to the learner of a later communicator: as numbers, in which doubles are kept bit by bit.
#include <algorithm>
#include <bit>
#include <type_traits>

#include "base/check.h"
#include "choose/learner.h"

namespace coco::choose {
namespace {

template <class T>
std::int64_t number_of(const T& value) {
    if constexpr (std::is_floating_point_v<T>)
        return std::bit_cast<std::int64_t>(value);
    else
        return static_cast<std::int64_t>(value);
}

template <class T>
void set_from(std::int64_t number, T& value) {
    if constexpr (std::is_floating_point_v<T>)
        value = std::bit_cast<T>(number);
    else
        value = static_cast<T>(number);
}

}  // namespace

// Visits all that stays between two looks, in one order: kKnownOfAll numbers, and kKnownOfEach for each candidate.
template <class Self, class Visit>
void Learner::visit_known(Self& self, Visit visit) {
    visit(self.incumbent_);
    visit(self.known_at_);
    visit(self.calls_before_);
    visit(self.looks_);
    visit(self.changes_);
    visit(self.results_);
    visit(self.spent_ns_);
    visit(self.agreements_are_dear_);
    for (int c = 0; c < self.candidates_; ++c) {
        auto& facts = self.facts_[c];
        visit(facts.time_ns);
        visit(facts.spread.low_ns);
        visit(facts.spread.high_ns);
        visit(facts.evidence);
        visit(facts.slow_evidence);
        visit(facts.comparisons);
        visit(facts.credit_ns);
        visit(facts.next_look);
        visit(facts.hopeless_probes);
        visit(facts.voids);
        visit(facts.look_ns);
        visit(facts.broken_off_at);
        visit(facts.by_wholes);
        visit(facts.seen);
        visit(facts.is_close);
    }
}

// Rests go on, in which the calls of the others count. But what is true of the others need not be true of this communicator: if it lives
// so long that a look at each challenger takes a hundredth of its calls, they come, and if it lives longer than one that has broken a look off.
// Its first calls are as ever: no rank has to wait there for others to agree.
void Learner::go_on_from(std::span<const std::int64_t> knowledge) {
    constexpr double kOwnShare = 0.01;
    COCO_CHECK(knowledge.size() == knowledge_size(candidates_), "knowledge is that of as many candidates");
    const std::uint64_t first_look = rest_end_;
    const std::int64_t* number = knowledge.data();
    visit_known(*this, [&](auto& value) { set_from(*number++, value); });
    for (Facts& facts : facts_) {
        facts.next_look = std::max(first_look, facts.next_look > known_at_ ? facts.next_look - known_at_ : 0);
        std::uint64_t own_rest = UINT64_MAX;
        if (facts.voids == 0 && facts.seen != Seen::never) {
            look_ns_ = facts.look_ns;
            own_rest = rest_for(kOwnShare / (candidates_ - 1), 0);
        } else if (facts.broken_off_at != 0) {
            own_rest = facts.broken_off_at;
        }
        facts.own_look = std::max(first_look, own_rest);
    }
    calls_before_ += known_at_;
    rest_until_next_look(1);
}

void Learner::break_off(std::uint64_t call) {
    if (phase_ == Phase::rest) return;
    std::uint64_t broken_off_at[kCandidatesMost] = {};
    for (int c = 0; c < candidates_; ++c)
        if (is_looked_at(c)) broken_off_at[c] = std::max(facts_[c].broken_off_at, call);
    end_void_look(call);
    for (int c = 0; c < candidates_; ++c)
        if (broken_off_at[c] != 0) facts_[c].broken_off_at = broken_off_at[c];
}

void Learner::write_knowledge(std::uint64_t call, std::vector<std::int64_t>& numbers) {
    known_at_ = call - 1;
    numbers.resize(knowledge_size(candidates_));
    std::int64_t* number = numbers.data();
    visit_known(*this, [&](const auto& value) { *number++ = number_of(value); });
}

}  // namespace coco::choose
