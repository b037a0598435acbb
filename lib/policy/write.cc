// SPDX-License-Identifier: BSD-3-Clause
//
// Writing rules, as parse_rules() reads them.
#include <algorithm>
#include <sstream>

#include "base/check.h"
#include "base/env.h"
#include "policy/policy.h"
#include "policy/toml.h"

namespace coco::policy {

// The formatter's own choice of quotes is wrong for some texts: a literal string of several lines may hold
// its own end.
std::string toml_string(std::string_view text) {
    std::ostringstream out;
    const toml::value<std::string> value{std::string(text)};
    out << toml::toml_formatter(
        value, toml::toml_formatter::default_flags & ~(toml::format_flags::allow_literal_strings |
                                                       toml::format_flags::allow_multi_line_strings));
    return out.str();
}

namespace {

std::string list_of(const std::vector<std::string>& words) {
    std::string list;
    for (const std::string& word : words) list.append(list.empty() ? "[" : ", ").append(toml_string(word));
    return list + "]";
}

// As parse_range() reads it. TOML's integers have a sign.
std::string text_of(const Range& range) {
    COCO_CHECK(range.first <= range.last, "a range that is written contains something");
    if (range.first == range.last && range.first <= INT64_MAX) return std::to_string(range.first);
    if (range.first == range.last) return toml_string(std::to_string(range.first));
    std::string text = range.first != 0 ? base::bytes_text(range.first) : "";
    text += '-';
    if (range.last != UINT64_MAX) text += base::bytes_text(range.last);
    return toml_string(text);
}

std::string text_of(const Condition& condition, const Range& range) {
    if (condition.range != &Rule::crowded) return text_of(range);
    COCO_CHECK(range.first == range.last && range.last <= 1, "a condition on crowded is true or false");
    return range.contains(1) ? "true" : "false";
}

bool differ_in_collective_alone(const Rule& one, const Rule& other) {
    return one.choice == other.choice && one.also == other.also && one.reason == other.reason &&
           conditions_are_equal(one, other);
}

void write(std::ostream& out, const Rule& rule, const std::vector<std::string>& collectives) {
    auto line = [&](std::string_view key, const std::string& value) {
        COCO_CHECK(key.size() < 11, "a key is shorter than its column");
        out << key << std::string(11 - key.size(), ' ') << "= " << value << '\n';
    };
    COCO_CHECK(!collectives.empty(), "a rule is for a collective or more");
    out << "\n[[rule]]\n";
    line("collective", collectives.size() == 1 ? toml_string(collectives[0]) : list_of(collectives));
    for (const Condition& condition : kConditions)
        if (const Range& range = rule.*condition.range; !range.contains_all())
            line(condition.name, text_of(condition, range));
    line("algorithm", toml_string(text_of(rule.choice)));
    std::vector<std::string> also;
    for (const Choice& choice : rule.also) also.push_back(text_of(choice));
    if (!also.empty()) line("also", list_of(also));
    if (!rule.reason.empty()) line("reason", toml_string(rule.reason));
}

}  // namespace

bool conditions_are_equal(const Rule& one, const Rule& other) {
    return std::ranges::all_of(kConditions, [&](const Condition& condition) {
        return one.*condition.range == other.*condition.range;
    });
}

std::string toml_of(std::span<const Rule> rules) {
    std::ostringstream out;
    for (std::size_t i = 0; i < rules.size();) {
        const Rule& rule = rules[i];
        std::vector<std::string> collectives;
        COCO_CHECK(rule.choice.algorithm == nullptr || serves(*rule.choice.algorithm, rule.collective),
                   "a rule chooses what serves its collective");
        for (; i < rules.size() && differ_in_collective_alone(rule, rules[i]); ++i)
            collectives.emplace_back(base::name_of(rules[i].collective));
        write(out, rule, collectives);
    }
    return out.str();
}

}  // namespace coco::policy
