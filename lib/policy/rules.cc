// SPDX-License-Identifier: BSD-3-Clause
//
// Reading rules.
#include <algorithm>

#include "base/check.h"
#include "policy/policy.h"
#include "policy/toml.h"

namespace coco::policy {
namespace {

using algorithms::Collective;

class Reader {
  public:
    Reader(std::string_view source, std::vector<Rule>& rules) : source_(source), rules_(rules) {}

    std::optional<Error> read(const toml::table& root) {
        for (const auto& [key, node] : root) {
            // What learned rules hold for (learned.h) matters where they are learned.
            if (key.str() == "holds_for" && node.is_table()) continue;
            if (key.str() == "otherwise") {
                if (node.value_exact<std::string_view>() != kBuiltIn)
                    return at(node, "otherwise must be \"built-in\": those rules then follow the file's own");
                goes_on_ = true;
                continue;
            }
            const toml::array* tables = node.as_array();
            if (key.str() != "rule")
                return at(key, "unknown key '" + text(key.str()) + "': must be [[rule]] or otherwise");
            if (tables == nullptr || (!tables->empty() && !tables->is_homogeneous(toml::node_type::table)))
                return at(key, "rule must be an array of tables, [[rule]]");
            for (const toml::node& table : *tables)
                if (auto error = read_rule(*table.as_table())) return error;
        }
        return std::nullopt;
    }

    // Whether the built-in rules follow.
    bool goes_on() const { return goes_on_; }

    std::optional<Error> at(const auto& where, const std::string& what) const {
        const toml::source_position& begin = where.source().begin;
        return Error{text(source_) + ":" + std::to_string(begin.line) + ":" + std::to_string(begin.column) +
                     ": " + what};
    }

  private:
    static std::string text(std::string_view s) { return std::string(s); }

    // A table may name several collectives. It becomes one rule for each of them.
    std::optional<Error> read_rule(const toml::table& table) {
        Rule rule{};
        rule.source = source_;
        rule.line = static_cast<int>(table.source().begin.line);
        const toml::node* algorithm = nullptr;
        std::vector<Collective> collectives;
        for (const auto& [key, node] : table) {
            if (key.str() == "algorithm") algorithm = &node;
            if (auto error = read_key(key, node, rule, collectives)) return error;
        }
        if (algorithm == nullptr) return at(table, "a rule needs algorithm = \"...\"");
        if (!table.contains("collective"))
            for (int c = 0; c < algorithms::kCollectives; ++c)
                collectives.push_back(static_cast<Collective>(c));
        COCO_CHECK(!collectives.empty(), "a rule is for a collective or more");
        COCO_CHECK(algorithm->is_string(), "a rule with no string for its algorithm was refused");
        for (Collective collective : collectives) {
            if (auto error = parse_choice(*algorithm->value<std::string_view>(), collective, rule.choice))
                return at(*algorithm, error->line);
            rule.also.clear();
            if (auto error = read_also(table, collective, rule.also)) return error;
            rule.collective = collective;
            rule.text = text_of(table, collective);
            rules_.push_back(rule);
        }
        return std::nullopt;
    }

    std::optional<Error> read_also(const toml::table& table, Collective collective,
                                   std::vector<Choice>& also) {
        const toml::node* node = table.get("also");
        if (node == nullptr) return std::nullopt;
        const toml::array* list = node->as_array();
        if (list == nullptr || (!list->empty() && !list->is_homogeneous(toml::node_type::string)))
            return at(*node, "also must be an array of strings, each as for algorithm");
        for (const toml::node& word : *list)
            if (auto error = parse_choice(*word.value<std::string_view>(), collective, also.emplace_back()))
                return at(word, error->line);
        return std::nullopt;
    }

    std::optional<Error> read_key(const toml::key& key, const toml::node& node, Rule& rule,
                                  std::vector<Collective>& collectives) {
        if (key.str() == "collective") return read_collectives(node, collectives);
        if (key.str() == "also") return std::nullopt;  // for each collective by itself
        if (key.str() == "algorithm" || key.str() == "reason") {
            auto value = node.value_exact<std::string_view>();
            if (!value) return at(node, text(key.str()) + " must be a string");
            if (key.str() == "reason") rule.reason = base::one_line(*value);
            return std::nullopt;
        }
        if (key.str() == "crowded") {
            auto value = node.value_exact<bool>();
            if (!value) return at(node, "crowded must be true or false");
            rule.crowded = *value ? Range{1, 1} : Range{0, 0};
            return std::nullopt;
        }
        Range* range = range_named(key.str(), rule);
        if (range == nullptr)
            return at(key, "unknown key '" + text(key.str()) +
                               "': must be collective, nodes, ranks, domains, crowded, block, degree, "
                               "calls, algorithm, also or reason");
        auto parsed = range_of(node);
        if (!parsed)
            return at(node,
                      text(key.str()) + " must be a number or a range such as \"2-8\", \"16-\" or \"-4K\"");
        COCO_CHECK(parsed->first <= parsed->last, "a range that was read contains something");
        *range = *parsed;
        return std::nullopt;
    }

    static Range* range_named(std::string_view key, Rule& rule) {
        const auto* found = std::ranges::find(kConditions, key, &Condition::name);
        return found != std::end(kConditions) ? &(rule.*found->range) : nullptr;
    }

    static std::optional<Range> range_of(const toml::node& node) {
        if (auto word = node.value_exact<std::string_view>()) return parse_range(*word);
        auto number = node.value_exact<std::int64_t>();
        if (!number || *number < 0) return std::nullopt;
        auto value = static_cast<std::uint64_t>(*number);
        return Range{value, value};
    }

    std::optional<Error> read_collectives(const toml::node& node, std::vector<Collective>& collectives) {
        if (!node.is_array()) return read_collective(node, collectives);
        for (const toml::node& element : *node.as_array())
            if (auto error = read_collective(element, collectives)) return error;
        return collectives.empty() ? at(node, "collective must name at least one") : std::nullopt;
    }

    std::optional<Error> read_collective(const toml::node& node, std::vector<Collective>& collectives) {
        auto name = node.value_exact<std::string_view>();
        if (!name)
            return at(node, "collective must be a string or an array of strings: " + list_of_collectives());
        auto collective = base::collective_of(*name);
        if (!collective)
            return at(node,
                      "unknown collective '" + text(*name) + "': must be one of " + list_of_collectives());
        collectives.push_back(*collective);
        return std::nullopt;
    }

    // Requires: it is a string, a truth value or a number.
    static std::string text_of(const toml::node& node) {
        if (auto word = node.value_exact<std::string_view>()) return '"' + text(*word) + '"';
        if (auto truth = node.value_exact<bool>()) return *truth ? "true" : "false";
        COCO_CHECK(node.is_integer(), "a value of a rule is a string, a truth value or a number");
        return std::to_string(*node.value<std::int64_t>());
    }

    // The keys come in one fixed order, so that equal rules have equal texts on all ranks.
    static std::string text_of(const toml::table& table, Collective collective) {
        std::string line = "collective = \"" + text(base::name_of(collective)) + "\"";
        auto add = [&](const char* key) {
            if (const toml::node* node = table.get(key); node != nullptr)
                line.append(", ").append(key).append(" = ").append(text_of(*node));
        };
        for (const Condition& condition : kConditions) add(condition.name);
        add("algorithm");
        if (const toml::array* also = table["also"].as_array(); also != nullptr && !also->empty()) {
            line.append(", also = [");
            for (const toml::node& word : *also)
                line.append(&word == also->get(0) ? "\"" : ", \"")
                    .append(*word.value<std::string_view>())
                    .append("\"");
            line.append("]");
        }
        return line;
    }

    std::string_view source_;
    std::vector<Rule>& rules_;
    bool goes_on_ = false;
};

}  // namespace

std::optional<Error> parse_rules(std::string_view toml, std::string_view source, std::vector<Rule>& rules) {
    toml::parse_result result = toml::parse(toml, source);
    std::vector<Rule> parsed;
    Reader reader(source, parsed);
    if (!result) return reader.at(result.error(), std::string(result.error().description()));
    if (auto error = reader.read(result.table())) return error;
    if (reader.goes_on()) {
        std::vector<Rule> built_in;
        if (auto error = parse_rules(default_rules(), kBuiltIn, built_in)) return error;
        parsed.insert(parsed.end(), built_in.begin(), built_in.end());
    }
    rules = std::move(parsed);
    return std::nullopt;
}

}  // namespace coco::policy
