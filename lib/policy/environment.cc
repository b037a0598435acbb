// SPDX-License-Identifier: BSD-3-Clause
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/check.h"
#include "base/env.h"
#include "base/index.h"
#include "policy/policy.h"

namespace coco::policy {
namespace {

using algorithms::Collective;

std::string wrong(const std::string& variable, const std::string& what) {
    COCO_CHECK(!base::env(variable.c_str()).empty(), "a variable that is wrong is set");
    return variable + "=" + std::string(base::env(variable.c_str())) + ": " + what;
}

std::optional<Error> read_disabled(Policy& policy) {
    std::string_view rest = base::env("COCO_DISABLE");
    if (rest.empty() || rest == "0") return std::nullopt;
    if (rest == "1") {
        for (auto& forced : policy.forced) forced = Choice{};
        return std::nullopt;
    }
    for (std::size_t comma = 0; comma != std::string_view::npos; rest.remove_prefix(comma + 1)) {
        comma = rest.find(',');
        auto collective = base::collective_of(rest.substr(0, comma));
        if (!collective)
            return Error{
                wrong("COCO_DISABLE", "'" + std::string(rest.substr(0, comma)) +
                                          "' is unknown: must be 1, 0, or a comma-separated list of " +
                                          list_of_collectives())};
        policy.forced[base::index(*collective)] = Choice{};
        if (comma == std::string_view::npos) break;
    }
    return std::nullopt;
}

std::optional<Error> read_forced(Policy& policy) {
    for (int c = 0; c < algorithms::kCollectives; ++c) {
        std::string variable = "COCO_";
        for (char letter : base::name_of(static_cast<Collective>(c)))
            variable += letter == '_' ? letter : static_cast<char>(letter - 'a' + 'A');
        std::string_view value = base::env(variable.c_str());
        if (value.empty()) continue;
        Choice choice;
        if (auto error = parse_choice(value, static_cast<Collective>(c), choice))
            return Error{wrong(variable, error->line)};
        policy.forced[c] = choice;
    }
    return std::nullopt;
}

std::optional<Error> read_rules(Policy& policy) {
    std::string file(base::env("COCO_POLICY"));
    policy.source = file.empty() ? std::string(kBuiltIn) : file;
    if (file.empty()) return parse_rules(default_rules(), policy.source, policy.rules);
    std::error_code ignored;
    bool folder = std::filesystem::is_directory(file, ignored);  // opens, but cannot be read
    std::ifstream in(file);
    std::string text(kMostFileBytes + 1, '\0');
    if (in && !folder) in.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (folder) errno = EISDIR;
    if (!in.is_open() || folder)
        return Error{wrong("COCO_POLICY", std::string("cannot be read (") + std::strerror(errno) +
                                              "): must be " + base::setting("COCO_POLICY").choices)};
    text.resize(base::index(in.gcount()));
    if (text.size() > kMostFileBytes)
        return Error{wrong("COCO_POLICY", "is longer than " + std::to_string(kMostFileBytes) + " bytes")};
    if (auto error = parse_rules(text, file, policy.rules)) return Error{wrong("COCO_POLICY", error->line)};
    return std::nullopt;
}

}  // namespace

std::string list_of_collectives() {
    std::string list;
    for (int c = 0; c < algorithms::kCollectives; ++c)
        list.append(c ? ", " : "").append(base::name_of(static_cast<Collective>(c)));
    return list;
}

std::optional<Error> from_environment(Policy& policy) {
    Policy fresh;
    if (auto error = read_rules(fresh)) return error;
    if (auto error = read_forced(fresh)) return error;
    if (auto error = read_disabled(fresh)) return error;  // last: it wins over COCO_<COLLECTIVE>
    policy = std::move(fresh);
    return std::nullopt;
}

}  // namespace coco::policy
