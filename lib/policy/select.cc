// SPDX-License-Identifier: BSD-3-Clause
#include "policy/policy.h"

namespace coco::policy {
namespace {

// One condition of a rule against one fact.
struct Test {
    const char* name;
    Range range;
    std::optional<std::uint64_t> fact;

    bool holds() const {
        bool any = range.first == 0 && range.last == UINT64_MAX;
        return any || (fact && range.contains(*fact));
    }
};

// The first condition that fails; name is null if all hold.
Test first_failing(const Rule& rule, const Facts& facts) {
    auto value = [](std::int32_t n) { return std::optional(static_cast<std::uint64_t>(n)); };
    const Test tests[] = {{"nodes", rule.nodes, value(facts.nodes)},
                          {"ranks", rule.ranks, value(facts.ranks_per_node)},
                          {"domains", rule.domains, value(facts.domains)},
                          {"block", rule.block, facts.block_bytes}};
    for (const Test& test : tests)
        if (!test.holds()) return test;
    return {nullptr, {}, {}};
}

std::string name_of(const Choice& choice) {
    return std::string(choice.algorithm == nullptr ? "mpi" : choice.algorithm->name) +
           algorithms::text_of(choice.parameters);
}

std::string place_of(const Policy& policy, const Rule& rule) {
    return policy.source + ":" + std::to_string(rule.line);
}

std::string why_not(const Test& test) {
    if (!test.fact) return std::string(test.name) + " is not known to all ranks for this collective";
    std::string range = std::to_string(test.range.first) + "-";
    if (test.range.last != UINT64_MAX) range += std::to_string(test.range.last);
    return std::string(test.name) + " is " + std::to_string(*test.fact) + ", outside " + range;
}

}  // namespace

Verdict select(const Policy& policy, const Facts& facts) {
    const auto& forced = policy.forced[static_cast<int>(facts.collective)];
    if (forced) return {*forced, -1, true};
    for (std::size_t i = 0; i < policy.rules.size(); ++i) {
        const Rule& rule = policy.rules[i];
        if (rule.collective == facts.collective && first_failing(rule, facts).name == nullptr)
            return {rule.choice, static_cast<int>(i), false};
    }
    return {};
}

std::string explain(const Policy& policy, const Facts& facts) {
    Verdict verdict = select(policy, facts);
    std::string lines =
        std::string(algorithms::name_of(facts.collective)) + ": " + name_of(verdict.choice) + '\n';
    if (verdict.forced) return lines + "  forced by the environment, before any rule\n";
    for (std::size_t i = 0; i < policy.rules.size(); ++i) {
        const Rule& rule = policy.rules[i];
        if (rule.collective != facts.collective) continue;
        bool applies = static_cast<int>(i) == verdict.rule;
        lines += "  " + place_of(policy, rule) + ": " + (applies ? "applies: " : "passed over: ") + rule.text;
        if (!applies) lines += " (" + why_not(first_failing(rule, facts)) + ")";
        if (applies && !rule.reason.empty()) lines += " (" + rule.reason + ")";
        lines += '\n';
        if (applies) return lines;
    }
    return lines + "  no rule matches, so mpi\n";
}

}  // namespace coco::policy
