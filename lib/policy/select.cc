// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "base/check.h"
#include "base/index.h"
#include "policy/policy.h"

namespace coco::policy {
namespace {

// One condition of a rule, and the fact that it asks for.
struct Test {
    const char* name;
    Range range;
    std::optional<std::uint64_t> fact;

    bool holds() const { return range.contains_all() || (fact && range.contains(*fact)); }
};

// Conditions that shall not count.
struct Whatever {
    bool calls = false, block = false;
};

// The first condition that does not hold; its name is null if all hold.
Test first_failing(const Rule& rule, const Facts& facts, Whatever whatever = {}) {
    auto value = [](std::int32_t n) { return std::optional(static_cast<std::uint64_t>(n)); };
    const Test tests[] = {{"nodes", rule.nodes, value(facts.nodes)},
                          {"ranks", rule.ranks, value(facts.ranks_per_node)},
                          {"domains", rule.domains, value(facts.domains)},
                          {"crowded", rule.crowded, facts.crowded ? 1 : 0},
                          {"block", whatever.block ? Range{} : rule.block, facts.block_bytes},
                          {"degree", rule.degree, facts.degree},
                          {"calls", whatever.calls ? Range{} : rule.calls, facts.calls}};
    for (const Test& test : tests)
        if (!test.holds()) return test;
    return {nullptr, {}, {}};
}

std::string place_of(const Rule& rule) {
    return base::one_line(rule.source) + ":" + std::to_string(rule.line);
}

std::string why_not(const Rule& rule, const Facts& facts) {
    const Test test = first_failing(rule, facts);
    if (test.name == nullptr) return "other ranks may see another block, and all must choose this alike";
    if (test.name == std::string_view("crowded"))
        return facts.crowded ? "crowded is true, not false" : "crowded is false, not true";
    if (!test.fact) return std::string(test.name) + " is not known to all ranks for this collective";
    std::string range = std::to_string(test.range.first) + "-";
    if (test.range.last != UINT64_MAX) range += std::to_string(test.range.last);
    return std::string(test.name) + " is " + std::to_string(*test.fact) + ", outside " + range;
}

// Whether a rule is for this collective, and its conditions hold.
bool matches(const Rule& rule, const Facts& facts, Whatever whatever = {}) {
    return rule.collective == facts.collective && first_failing(rule, facts, whatever).name == nullptr;
}

const Rule& rule_at(const Policy& policy, int number) {
    COCO_CHECK_DEAR(number >= 0 && base::index(number) < policy.rules.size(),
                    "a rule has a number of its policy");
    return policy.rules[base::index(number)];
}

// The values, this one among them, of which a condition holds for all or for none.
Range values_alike(const Range& condition, std::uint64_t value) {
    if (condition.contains(value)) return condition;
    return value < condition.first ? Range{0, condition.first - 1} : Range{condition.last + 1, UINT64_MAX};
}

// The number of the last call up to which no rule's condition on `calls` changes.
std::uint64_t last_call_alike(const Policy& policy, std::span<const int> rules, const Facts& facts,
                              Whatever whatever = {}) {
    whatever.calls = true;
    Range alike;
    for (const int number : rules)
        if (const Rule& rule = rule_at(policy, number); matches(rule, facts, whatever))
            alike = alike.overlap_with(values_alike(rule.calls, facts.calls));
    return alike.last;
}

// The blocks for which no rule's condition on `block` changes.
Range blocks_alike(const Policy& policy, std::span<const int> rules, const Facts& facts) {
    if (!facts.block_bytes) return {};
    Range alike;
    for (const int number : rules)
        alike = alike.overlap_with(values_alike(rule_at(policy, number).block, *facts.block_bytes));
    return alike;
}

bool receivers_copy(const Choice& choice) {
    const algorithms::Algorithm* algorithm = choice.algorithm;
    return algorithm != nullptr && algorithm->one_node() && !algorithm->writes_peer_recv();
}

// Whether the rule would decide by a block size that other ranks do not know, for an algorithm that all ranks
// must run.
bool would_divide_ranks(const Rule& rule, const Facts& facts) {
    return facts.block_is_own && facts.block_bytes && !receivers_copy(rule.choice);
}

Verdict first_match(const Policy& policy, std::span<const int> rules, const Facts& facts) {
    Verdict verdict;
    verdict.last_call = last_call_alike(policy, rules, facts);
    verdict.blocks = blocks_alike(policy, rules, facts);
    for (const int number : rules) {
        const Rule& rule = rule_at(policy, number);
        if (!matches(rule, facts)) continue;
        if (would_divide_ranks(rule, facts)) continue;
        verdict.choice = rule.choice;
        verdict.rule = number;
        break;
    }
    COCO_CHECK_DEAR(verdict.last_call >= facts.calls, "a verdict holds for the call that asked for it");
    COCO_CHECK_DEAR(!facts.block_bytes || verdict.blocks.contains(*facts.block_bytes),
                    "a verdict holds for the block that it was asked for");
    COCO_CHECK_DEAR(
        verdict.choice.algorithm == nullptr || serves(*verdict.choice.algorithm, facts.collective),
        "a rule chooses what serves its collective");
    return verdict;
}

// The facts by which all ranks choose alike: those without the block. If they lead to an algorithm in which
// receivers copy, then all facts: among such algorithms each rank may choose by its own block.
Facts common_to_all(const Policy& policy, std::span<const int> rules, const Facts& facts) {
    if (!facts.block_is_own) return facts;
    Facts common = facts;
    common.block_bytes = std::nullopt;
    return receivers_copy(first_match(policy, rules, common).choice) ? facts : common;
}

}  // namespace

std::string text_of(const Choice& choice) {
    return std::string(choice.algorithm == nullptr ? "mpi" : choice.algorithm->name) +
           algorithms::text_of(choice.parameters);
}

std::vector<int> rules_for(const Policy& policy, const Facts& facts) {
    std::vector<int> numbers;
    for (std::size_t i = 0; i < policy.rules.size(); ++i)
        if (matches(policy.rules[i], facts, {.calls = true, .block = true}))
            numbers.push_back(base::number(i));
    return numbers;
}

Verdict select(const Policy& policy, std::span<const int> rules, const Facts& facts) {
    COCO_CHECK_DEAR(std::ranges::equal(rules, rules_for(policy, facts)),
                    "a choice is made by the rules for its facts");
    const auto& forced = policy.forced[base::index(facts.collective)];
    COCO_CHECK_DEAR(!forced || forced->algorithm == nullptr || serves(*forced->algorithm, facts.collective),
                    "what is forced serves its collective");
    if (forced) return {*forced, -1, true};
    return first_match(policy, rules, common_to_all(policy, rules, facts));
}

Verdict select(const Policy& policy, const Facts& facts) {
    return select(policy, rules_for(policy, facts), facts);
}

Verdict select_to_see(const Policy& policy, std::span<const int> rules, const Facts& facts) {
    COCO_CHECK_DEAR(std::ranges::equal(rules, rules_for(policy, facts)),
                    "a choice is made by the rules for its facts");
    const Whatever whatever{.block = true};
    for (const int number : rules) {
        const Rule& rule = rule_at(policy, number);
        if (rule.choice.algorithm != nullptr && matches(rule, facts, whatever))
            return {rule.choice, number, false, last_call_alike(policy, rules, facts, whatever)};
    }
    return {};
}

bool ask_for_block(const Policy& policy, std::span<const int> rules) {
    return std::ranges::any_of(rules,
                               [&](int number) { return !rule_at(policy, number).block.contains_all(); });
}

std::string explain(const Policy& policy, const Facts& facts) {
    Verdict verdict = select(policy, facts);
    std::string lines = std::string(base::name_of(facts.collective)) + ": " + text_of(verdict.choice) + '\n';
    if (verdict.forced) return lines + "  forced by the environment, before any rule\n";
    const Facts used = common_to_all(policy, rules_for(policy, facts), facts);
    for (std::size_t i = 0; i < policy.rules.size(); ++i) {
        const Rule& rule = policy.rules[i];
        if (rule.collective != facts.collective) continue;
        bool applies = base::number(i) == verdict.rule;
        lines += "  " + place_of(rule) + ": " + (applies ? "applies: " : "passed over: ") + rule.text;
        if (!applies) lines += " (" + why_not(rule, used) + ")";
        if (applies && !rule.reason.empty()) lines += " (" + rule.reason + ")";
        lines += '\n';
        if (applies) return lines;
    }
    return lines + "  no rule matches, so mpi\n";
}

}  // namespace coco::policy
