// SPDX-License-Identifier: BSD-3-Clause
#include "choose/journal.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/index.h"

namespace coco::choose {
namespace {

// What is told is how many kinds follow; of each the kind, where its knowledge begins, and how many numbers
// it has; and then these.
constexpr std::size_t kKinds = 0, kHead = 1, kEntry = 3;

bool is_of_same_kind(const Lesson& lesson, const policy::Facts& facts, const Cell& cell) {
    return lesson.facts.collective == facts.collective && are_arranged_alike(lesson.facts, facts) &&
           lesson.facts.degree == facts.degree && lesson.facts.most_blocks == facts.most_blocks &&
           lesson.size_class == cell.size_class && lesson.rule == cell.rule;
}

}  // namespace

bool are_arranged_alike(const policy::Facts& one, const policy::Facts& other) {
    return one.nodes == other.nodes && one.ranks_per_node == other.ranks_per_node &&
           one.domains == other.domains && one.crowded == other.crowded;
}

void Journal::note(const policy::Facts& facts, const Cell& cell) {
    const Learner& learner = cell.lessons->learner;
    const std::uint64_t calls = learner.calls_before() + cell.calls;
    std::scoped_lock hold(lock_);
    auto known = std::ranges::find_if(
        lessons_, [&](const Lesson& other) { return is_of_same_kind(other, facts, cell); });
    if (known == lessons_.end()) {
        lessons_.push_back({.facts = facts,
                            .size_class = cell.size_class,
                            .rule = cell.rule,
                            .candidates = cell.lessons->candidates,
                            .times_ns = {},
                            .spreads = {}});
        known = lessons_.end() - 1;
    }
    if (std::pair(known->results, known->calls) > std::pair(learner.results(), calls)) return;
    known->results = learner.results();
    known->noted = ++noted_;
    known->facts = facts;
    known->incumbent = learner.incumbent();
    known->calls = calls;
    known->looks = learner.looks();
    known->changes = learner.changes();
    known->spent_ns = learner.spent_ns();
    learner.write_knowledge(cell.calls + 1, known->knowledge);
    const std::size_t candidates = known->candidates.size();
    known->times_ns.resize(candidates);
    known->spreads.resize(candidates);
    for (std::size_t c = 0; c < candidates; ++c) {
        known->times_ns[c] = learner.time_ns(base::number(c));
        known->spreads[c] = learner.spread(base::number(c));
    }
}

void Journal::tell(const policy::Facts& arrangement, std::span<std::int64_t> room) {
    std::scoped_lock hold(lock_);
    room[kKinds] = 0;
    std::vector<const Lesson*> lessons;
    for (const Lesson& lesson : lessons_)
        // Neighbours' blocks may be of any size where no rank knows it.
        if (are_arranged_alike(lesson.facts, arrangement) && lesson.size_class >= 0)
            lessons.push_back(&lesson);
    std::ranges::sort(lessons, std::greater{}, &Lesson::noted);
    std::size_t needed = kHead, kinds = 0;
    for (; kinds < lessons.size(); ++kinds) {
        needed += kEntry + lessons[kinds]->knowledge.size();
        if (needed > room.size()) break;
    }
    std::size_t at = kHead + kEntry * kinds;
    for (std::size_t k = 0; k < kinds; ++k) {
        const Lesson& lesson = *lessons[k];
        const std::int64_t entry[kEntry] = {
            static_cast<std::int64_t>(kind_of(lesson.facts, lesson.size_class, lesson.rule)),
            static_cast<std::int64_t>(at), static_cast<std::int64_t>(lesson.knowledge.size())};
        std::ranges::copy(entry, room.data() + kHead + kEntry * k);
        std::ranges::copy(lesson.knowledge, room.data() + at);
        at += lesson.knowledge.size();
    }
    room[kKinds] = static_cast<std::int64_t>(kinds);
}

std::uint64_t kind_of(const policy::Facts& facts, int size_class, int rule) {
    std::uint64_t hash = 0xCBF29CE484222325u;
    for (std::uint64_t fact :
         {static_cast<std::uint64_t>(facts.collective), static_cast<std::uint64_t>(facts.nodes),
          static_cast<std::uint64_t>(facts.ranks_per_node), static_cast<std::uint64_t>(facts.domains),
          std::uint64_t{facts.crowded}, facts.degree.value_or(UINT64_MAX),
          facts.most_blocks.value_or(UINT64_MAX), static_cast<std::uint64_t>(size_class),
          static_cast<std::uint64_t>(rule)})
        hash = (hash ^ fact) * 0x100000001B3u;
    return hash | 1;
}

std::span<const std::int64_t> find_knowledge(std::span<const std::int64_t> told, std::uint64_t kind) {
    if (told.size() < kHead) return {};
    for (std::size_t k = 0; k < base::index(told[kKinds]); ++k) {
        const std::span entry = told.subspan(kHead + kEntry * k, kEntry);
        if (static_cast<std::uint64_t>(entry[0]) == kind)
            return told.subspan(base::index(entry[1]), base::index(entry[2]));
    }
    return {};
}

void Journal::forget() {
    std::scoped_lock hold(lock_);
    lessons_.clear();
}

std::vector<Lesson> Journal::lessons() const {
    std::scoped_lock hold(lock_);
    std::vector<Lesson> all;
    std::ranges::copy_if(lessons_, std::back_inserter(all),
                         [](const Lesson& lesson) { return lesson.results != 0; });
    return all;
}

}  // namespace coco::choose
