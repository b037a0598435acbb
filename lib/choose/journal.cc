// SPDX-License-Identifier: BSD-3-Clause
#include "choose/journal.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "base/hash.h"
#include "base/index.h"

namespace coco::choose {
namespace {

// What is told is how many kinds follow, and of each the kind, how many numbers its knowledge has, and these.
constexpr std::size_t kHead = 1, kEntryHead = 2;

bool are_arranged_alike(const policy::Facts& one, const policy::Facts& other) {
    return one.nodes == other.nodes && one.ranks_per_node == other.ranks_per_node &&
           one.domains == other.domains && one.crowded == other.crowded;
}

}  // namespace

std::uint64_t kind_of(const policy::Facts& facts, int size_class, int rule) {
    base::Hash hash;
    for (std::uint64_t fact :
         {static_cast<std::uint64_t>(facts.collective), static_cast<std::uint64_t>(facts.nodes),
          static_cast<std::uint64_t>(facts.ranks_per_node), static_cast<std::uint64_t>(facts.domains),
          std::uint64_t{facts.crowded}, facts.degree.value_or(UINT64_MAX),
          facts.most_blocks.value_or(UINT64_MAX), static_cast<std::uint64_t>(size_class),
          static_cast<std::uint64_t>(rule)})
        hash.add(fact);
    return hash.value();
}

void Journal::note(const Cell& cell) {
    const policy::Facts& facts = cell.lessons->facts;
    const Knowledge knowledge = cell.lessons->learner.knowledge_before(cell.calls + 1);
    const std::uint64_t kind = kind_of(facts, cell.size_class, cell.rule);
    std::scoped_lock hold(lock_);
    auto known = std::ranges::find(lessons_, kind, &Lesson::kind);
    if (known == lessons_.end())
        known = lessons_.insert(known, {kind, facts, cell.size_class, cell.rule, cell.lessons->candidates});
    auto weight = [](const Knowledge& one) { return std::pair(one.results, one.calls); };
    if (weight(known->knowledge) > weight(knowledge)) return;
    known->knowledge = knowledge;
    known->noted = ++noted_;
}

void Journal::tell(const policy::Facts& arrangement, std::span<std::int64_t> room) {
    std::scoped_lock hold(lock_);
    std::vector<const Lesson*> lessons;
    for (const Lesson& lesson : lessons_)
        // Neighbours' blocks may be of any size where no rank knows it.
        if (are_arranged_alike(lesson.facts, arrangement) && lesson.size_class >= 0)
            lessons.push_back(&lesson);
    std::ranges::sort(lessons, std::greater{}, &Lesson::noted);
    room[0] = 0;
    std::size_t end = kHead;
    for (const Lesson* lesson : lessons) {
        const std::size_t size = Knowledge::size(lesson->candidates.size());
        const std::span entry = room.subspan(end);
        if (entry.size() < kEntryHead + size) return;
        entry[0] = static_cast<std::int64_t>(lesson->kind);
        entry[1] = static_cast<std::int64_t>(size);
        std::memcpy(&entry[kEntryHead], &lesson->knowledge, size * sizeof entry[0]);
        end += kEntryHead + size;
        ++room[0];
    }
}

std::span<const std::int64_t> find_knowledge(std::span<const std::int64_t> told, std::uint64_t kind) {
    std::int64_t entries = told.empty() ? 0 : told[0];
    for (std::size_t at = kHead; entries > 0; --entries) {
        const std::span entry = told.subspan(at);
        const std::size_t size = base::index(entry[1]);
        if (static_cast<std::uint64_t>(entry[0]) == kind) return entry.subspan(kEntryHead, size);
        at += kEntryHead + size;
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
                         [](const Lesson& lesson) { return lesson.knowledge.results != 0; });
    return all;
}

}  // namespace coco::choose
