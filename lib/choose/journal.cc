// SPDX-License-Identifier: BSD-3-Clause
#include "choose/journal.h"

#include <algorithm>

namespace coco::choose {
namespace {

bool is_of_same_kind(const Lesson& lesson, const policy::Facts& facts, const Cell& cell) {
    const policy::Facts& other = lesson.facts;
    return other.collective == facts.collective && other.nodes == facts.nodes &&
           other.ranks_per_node == facts.ranks_per_node && other.domains == facts.domains &&
           other.crowded == facts.crowded && other.degree == facts.degree &&
           lesson.size_class == cell.size_class && lesson.rule == cell.rule;
}

}  // namespace

void Journal::note(const policy::Facts& facts, const Cell& cell) {
    const Learner& learner = cell.lessons->learner;
    Lesson lesson{.facts = facts,
                  .size_class = cell.size_class,
                  .rule = cell.rule,
                  .candidates = cell.lessons->candidates,
                  .times_ns = {},
                  .spreads = {},
                  .incumbent = learner.incumbent(),
                  .calls = cell.calls,
                  .looks = learner.looks(),
                  .changes = learner.changes(),
                  .spent_ns = learner.spent_ns()};
    for (int c = 0; c < static_cast<int>(lesson.candidates.size()); ++c) {
        lesson.times_ns.push_back(learner.time_ns(c));
        lesson.spreads.push_back(learner.spread(c));
    }
    std::scoped_lock hold(lock_);
    auto known = std::ranges::find_if(
        lessons_, [&](const Lesson& other) { return is_of_same_kind(other, facts, cell); });
    if (known == lessons_.end())
        lessons_.push_back(std::move(lesson));
    else if (known->calls <= lesson.calls)
        *known = std::move(lesson);
}

std::vector<Lesson> Journal::lessons() const {
    std::scoped_lock hold(lock_);
    return lessons_;
}

}  // namespace coco::choose
