// SPDX-License-Identifier: BSD-3-Clause
#include "policy/learned.h"

#include <cstdio>
#include <sstream>

#include "policy/toml.h"

namespace coco::policy {
namespace {

constexpr std::string_view kHoldsFor = "holds_for";
// The last line, as what is left of a file that was cut off may be good TOML.
constexpr std::string_view kEnd = "# The end.\n";

class Hash {
  public:
    void add(std::string_view text) {
        for (char c : text) add_byte(static_cast<unsigned char>(c));
        add_byte(0);
    }
    std::string digits() const {
        char text[17];
        std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value_));
        return text;
    }

  private:
    void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001B3u; }  // FNV-1a
    std::uint64_t value_ = 0xCBF29CE484222325u;
};

// As parse_range() reads it.
std::string text_of(const Range& range) {
    if (range.first == range.last) return std::to_string(range.first);
    std::string text = range.first != 0 ? std::to_string(range.first) : "";
    text += '-';
    if (range.last != UINT64_MAX) text += std::to_string(range.last);
    return text;
}

toml::table table_of(const Rule& rule) {
    toml::table table;
    table.insert("collective", std::string(base::name_of(rule.collective)));
    auto add = [&](const char* name, const Range& range) {
        if (range.first != 0 || range.last != UINT64_MAX) table.insert(name, text_of(range));
    };
    add("nodes", rule.nodes);
    add("ranks", rule.ranks);
    add("domains", rule.domains);
    add("block", rule.block);
    add("degree", rule.degree);
    add("calls", rule.calls);
    table.insert("algorithm", text_of(rule.choice));
    toml::array also;
    for (const Choice& choice : rule.also) also.push_back(text_of(choice));
    if (!also.empty()) table.insert("also", std::move(also));
    if (!rule.reason.empty()) table.insert("reason", rule.reason);
    return table;
}

}  // namespace

std::string hash_of(const LearnedKey& key) {
    Hash hash;
    for (const std::string& part : {key.libcoco, key.mpi, key.machine, key.policy}) hash.add(part);
    return hash.digits();
}

std::string hash_of(std::span<const Rule> rules) {
    Hash hash;
    for (const Rule& rule : rules) hash.add(rule.text);
    return hash.digits();
}

std::string text_of(const Learned& learned) {
    toml::table key;
    key.insert("libcoco", learned.key.libcoco);
    key.insert("mpi", learned.key.mpi);
    key.insert("machine", learned.key.machine);
    key.insert("policy", learned.key.policy);
    toml::array rules;
    for (const Rule& rule : learned.rules) rules.push_back(table_of(rule));
    toml::table root;
    root.insert(kHoldsFor, std::move(key));
    root.insert("rule", std::move(rules));
    std::ostringstream text;
    text << "# Written by libcoco (COCO_LEARN) when a job ended. It may be deleted at any time.\n\n"
         << toml::toml_formatter(root) << '\n'
         << kEnd;
    return text.str();
}

std::optional<Error> parse_learned(std::string_view toml, std::string_view source, Learned& learned) {
    const toml::parse_result result = toml::parse(toml, source);
    if (!result) return Error{std::string(source) + ": " + std::string(result.error().description())};
    auto part = [&](const char* name) { return result.table()[kHoldsFor][name].value_or(std::string()); };
    learned.key = {part("libcoco"), part("mpi"), part("machine"), part("policy")};
    if (!toml.ends_with(kEnd)) return Error{std::string(source) + ": was cut off"};
    return parse_rules(toml, source, learned.rules);
}

}  // namespace coco::policy
