// SPDX-License-Identifier: BSD-3-Clause
#include "policy/learned.h"

#include <cstdio>
#include <sstream>

#include "base/hash.h"
#include "policy/toml.h"

namespace coco::policy {
namespace {

constexpr std::string_view kHoldsFor = "holds_for";
// The last line, as what is left of a file that was cut off may be good TOML.
constexpr std::string_view kEnd = "# The end.\n";

std::string digits_of(const base::Hash& hash) {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash.value()));
    return text;
}

}  // namespace

std::string hash_of(const LearnedKey& key) {
    base::Hash hash;
    for (const std::string& part : {key.libcoco, key.mpi, key.machine, key.transport, key.policy})
        hash.add(part);
    return digits_of(hash);
}

std::string hash_of(std::span<const Rule> rules) {
    base::Hash hash;
    for (const Rule& rule : rules) hash.add(rule.text);
    return digits_of(hash);
}

std::string text_of(const Learned& learned) {
    const LearnedKey& key = learned.key;
    std::ostringstream text;
    text << "# Written by libcoco (COCO_LEARN) when a job ended. It may be deleted at any time.\n\n"
         << '[' << kHoldsFor << "]\n"
         << "libcoco = " << toml_string(key.libcoco) << "\nmpi = " << toml_string(key.mpi)
         << "\nmachine = " << toml_string(key.machine) << "\ntransport = " << toml_string(key.transport)
         << "\npolicy = " << toml_string(key.policy) << "\n\n"
         << toml_of(learned.rules) << '\n'
         << kEnd;
    return text.str();
}

std::optional<Error> parse_learned(std::string_view toml, std::string_view source, Learned& learned) {
    const toml::parse_result result = toml::parse(toml, source);
    if (!result) return Error{std::string(source) + ": " + std::string(result.error().description())};
    auto part = [&](const char* name) { return result.table()[kHoldsFor][name].value_or(std::string()); };
    learned.key = {part("libcoco"), part("mpi"), part("machine"), part("transport"), part("policy")};
    if (!toml.ends_with(kEnd)) return Error{std::string(source) + ": was cut off"};
    return parse_rules(toml, source, learned.rules);
}

}  // namespace coco::policy
