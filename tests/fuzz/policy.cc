// SPDX-License-Identifier: BSD-3-Clause
// Fuzz target: a policy file, and the facts of a call for which it is asked.
#include "policy/policy.h"

#include <algorithm>

#include "fuzz.h"
#include "policy/learned.h"

namespace {

using namespace coco;
using policy::Rule;

constexpr const char* kSource = "file.toml";

policy::Facts facts_of(fuzz::Input& input) {
    policy::Facts facts{};
    facts.collective = static_cast<algorithms::Collective>(input.number_up_to(algorithms::kCollectives - 1));
    facts.nodes = input.number<std::int32_t>();
    facts.ranks_per_node = input.number<std::int32_t>();
    facts.domains = input.number<std::int32_t>();
    if (input.flag()) facts.block_bytes = input.number<std::uint64_t>();
    facts.block_is_own = input.flag();
    if (input.flag()) facts.degree = input.number<std::uint64_t>();
    facts.calls = input.number<std::uint64_t>();
    facts.crowded = input.flag();
    return facts;
}

// Whether the rules ask for and choose the same.
bool is_same(const Rule& one, const Rule& other) {
    return one.collective == other.collective && one.nodes == other.nodes && one.ranks == other.ranks &&
           one.block == other.block && one.domains == other.domains && one.crowded == other.crowded &&
           one.degree == other.degree && one.calls == other.calls && one.choice == other.choice &&
           one.also == other.also;
}

// A choice is read back from its own text.
void check_choice(const policy::Choice& choice, algorithms::Collective collective) {
    policy::Choice again;
    const std::string text = policy::text_of(choice);
    REQUIRE_TRUE(!policy::parse_choice(text, collective, again), text);
    REQUIRE_TRUE(again == choice, text);
}

// A rule's text is what a user could have written for it.
void check_text(const Rule& rule) {
    REQUIRE_TRUE(fuzz::is_one_line(rule.text), rule.text);
    std::vector<Rule> again;
    REQUIRE_TRUE(!policy::parse_rules("rule = [{" + rule.text + "}]", kSource, again), rule.text);
    REQUIRE_TRUE(again.size() == 1 && is_same(again[0], rule) && again[0].text == rule.text, rule.text);
}

// A file of learned rules holds what it was made of.
void check_learned(const std::vector<Rule>& rules) {
    const policy::Learned learned{{"1", "2", "3", "4", "5"}, rules};
    policy::Learned again;
    const std::string text = policy::text_of(learned);
    REQUIRE_TRUE(!policy::parse_learned(text, kSource, again), text);
    REQUIRE_TRUE(again.key == learned.key && again.rules.size() == rules.size(), text);
    for (std::size_t i = 0; i < rules.size(); ++i) {
        REQUIRE_TRUE(is_same(again.rules[i], rules[i]), text);
        REQUIRE_TRUE(again.rules[i].reason == rules[i].reason, text);
    }
    REQUIRE_TRUE(policy::text_of(again) == text, text);
}

void check_verdict(const policy::Policy& policy, const policy::Facts& facts) {
    const policy::Verdict verdict = policy::select(policy, facts);
    REQUIRE_TRUE(verdict.rule < static_cast<int>(policy.rules.size()), "verdict");
    if (verdict.rule >= 0) {
        const Rule& rule = policy.rules[static_cast<std::size_t>(verdict.rule)];
        REQUIRE_TRUE(rule.collective == facts.collective && rule.choice == verdict.choice, rule.text);
    }
    REQUIRE_TRUE(verdict.last_call >= facts.calls, "verdict");
    policy::Facts later = facts;
    later.calls = verdict.last_call;
    REQUIRE_TRUE(policy::select(policy, later).rule == verdict.rule,
                 "the verdict of the last call for which it holds");

    const std::string lines = policy::explain(policy, facts);
    REQUIRE_TRUE(lines.ends_with('\n'), lines);
    const auto rules = std::ranges::count(policy.rules, facts.collective, &Rule::collective);
    REQUIRE_TRUE(std::ranges::count(lines, '\n') <= rules + 2, lines);
    REQUIRE_TRUE(lines.find(": " + policy::text_of(verdict.choice) + "\n") != lines.npos, lines);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const policy::Facts facts = facts_of(input);
    const std::string_view toml = input.rest();

    policy::Policy policy;
    policy.source = kSource;
    if (auto error = policy::parse_rules(toml, kSource, policy.rules)) {
        REQUIRE_TRUE(policy.rules.empty(), error->line);
        REQUIRE_TRUE(fuzz::is_one_line(error->line) && error->line.starts_with(kSource), error->line);
        return 0;
    }
    for (const Rule& rule : policy.rules) {
        check_choice(rule.choice, rule.collective);
        for (const policy::Choice& also : rule.also) check_choice(also, rule.collective);
        check_text(rule);
    }
    check_learned(policy.rules);
    check_verdict(policy, facts);
    return 0;
}
