// SPDX-License-Identifier: BSD-3-Clause
#include "choose/rules_learned.h"

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "base/index.h"

namespace coco::choose {
namespace {

using policy::Range;
using policy::Rule;

// As many rules as a file keeps; the oldest go. Each takes a later job that is large enough for it 0.08 ms in
// MPI_Init.
constexpr std::ptrdiff_t kMostRules = 200;

Range exactly(std::uint64_t value) { return {value, value}; }

bool hold_for_same(const Rule& one, const Rule& other) {
    return one.collective == other.collective && policy::conditions_are_equal(one, other);
}

std::string reason_of(const Lesson& lesson) {
    std::string text = "learned in " + std::to_string(lesson.knowledge.calls) + " calls: ";
    for (std::size_t c = 0; c < lesson.candidates.size(); ++c) {
        const std::int64_t time_ns = lesson.knowledge.of[c].time_ns;
        if (time_ns == 0) continue;
        char time[32];
        std::snprintf(time, sizeof time, " %.3g us", static_cast<double>(time_ns) / 1000);
        if (!text.ends_with(": ")) text += ", ";
        text += policy::text_of(lesson.candidates[c]) + time;
    }
    return text;
}

// The rule for the calls of a lesson's cell.
Rule rule_of(const Lesson& lesson, const policy::Policy& policy) {
    Rule rule{};
    rule.collective = lesson.facts.collective;
    rule.nodes = exactly(base::index(lesson.facts.nodes));
    rule.ranks = exactly(base::index(lesson.facts.ranks_per_node));
    rule.domains = exactly(base::index(lesson.facts.domains));
    rule.crowded = exactly(lesson.facts.crowded ? 1 : 0);
    rule.block = blocks_of(lesson.size_class);
    if (lesson.facts.degree) rule.degree = exactly(*lesson.facts.degree);
    rule.choice = lesson.candidates[base::index(lesson.knowledge.incumbent)];
    rule.reason = reason_of(lesson);
    // A rule that ends in the midst of a size class bounds the cell.
    if (lesson.rule >= 0) {
        const Rule& source = policy.rules[base::index(lesson.rule)];
        rule.block = rule.block.overlap_with(source.block);
        rule.calls = source.calls;
    }
    // The MPI library's function is a candidate of every cell.
    for (const policy::Choice& candidate : lesson.candidates)
        if (candidate.algorithm != nullptr && candidate != rule.choice) rule.also.push_back(candidate);
    return rule;
}

// Equal for lessons that differ in nothing that a rule can ask for. (Neighbours' may have other numbers of
// blocks.)
std::uint64_t kind_for_rules(const Lesson& lesson) {
    policy::Facts facts = lesson.facts;
    facts.most_blocks = std::nullopt;
    return kind_of(facts, lesson.size_class, lesson.rule);
}

// Whether there is such a lesson that rests on more.
bool is_outweighed(const Lesson& lesson, std::span<const Lesson> lessons) {
    auto weight = [](const Lesson& one) {
        return std::tuple(one.knowledge.results, one.knowledge.calls, one.noted);
    };
    return std::ranges::any_of(lessons, [&](const Lesson& other) {
        return weight(other) > weight(lesson) && kind_for_rules(other) == kind_for_rules(lesson);
    });
}

}  // namespace

std::vector<Rule> rules_learned(std::span<const Lesson> lessons, const policy::Policy& policy,
                                std::vector<Rule> old) {
    for (const Lesson& lesson : lessons) {
        if (lesson.knowledge.incumbent == 0 || is_outweighed(lesson, lessons)) continue;
        Rule rule = rule_of(lesson, policy);
        std::erase_if(old, [&](const Rule& other) { return hold_for_same(other, rule); });
        old.push_back(std::move(rule));
    }
    if (std::ssize(old) > kMostRules) old.erase(old.begin(), old.end() - kMostRules);
    return old;
}

std::vector<Rule> rules_for_job(std::vector<Rule> rules, std::uint64_t ranks) {
    // Each node of a communicator has a rank at least, and one of them as many as the rule says.
    std::erase_if(rules, [&](const Rule& rule) {
        const std::uint64_t nodes = std::max<std::uint64_t>(rule.nodes.first, 1);
        return nodes > ranks || rule.ranks.first > ranks - nodes + 1;
    });
    return rules;
}

}  // namespace coco::choose
