// SPDX-License-Identifier: BSD-3-Clause
#include "base/env.h"
#include "policy/policy.h"

namespace coco::policy {
namespace {

std::string choices_for(algorithms::Collective collective) {
    std::string list = "mpi";
    for (const algorithms::Algorithm& algorithm : algorithms::registry())
        if (algorithms::serves(algorithm, collective)) list.append(", ").append(algorithm.name);
    return list;
}

// "segment=64K": the only parameter so far.
std::optional<Error> parse_parameter(std::string_view text, Choice& choice) {
    std::string quoted = "parameter '" + std::string(text) + "'";
    std::string name(choice.algorithm == nullptr ? "mpi" : choice.algorithm->name);
    if (choice.algorithm == nullptr || !choice.algorithm->segmented)
        return Error{quoted + ": " + name + " takes none"};
    std::uint64_t bytes = 0;
    if (!text.starts_with("segment=")) return Error{quoted + ": must be segment=BYTES for " + name};
    if (!base::parse_bytes(text.substr(8), bytes) || bytes == 0)
        return Error{quoted + ": must be bytes above 0, with K, M, G or T"};
    choice.segment_bytes = bytes;
    return std::nullopt;
}

}  // namespace

std::optional<Error> parse_choice(std::string_view text, algorithms::Collective collective, Choice& choice) {
    std::size_t colon = text.find(':');
    std::string_view name = text.substr(0, colon);
    Choice parsed{algorithms::find(name), 0};
    std::string must = ": must be one of " + choices_for(collective);
    if (parsed.algorithm == nullptr && name != "mpi")
        return Error{"unknown algorithm '" + std::string(name) + "'" + must};
    if (parsed.algorithm != nullptr && !algorithms::serves(*parsed.algorithm, collective))
        return Error{std::string(name) + " does not serve " + std::string(algorithms::name_of(collective)) +
                     must};
    while (colon != std::string_view::npos) {
        text.remove_prefix(colon + 1);
        colon = text.find(',');
        if (auto error = parse_parameter(text.substr(0, colon), parsed)) return error;
    }
    choice = parsed;
    return std::nullopt;
}

std::optional<Range> parse_range(std::string_view text) {
    Range range;
    std::size_t dash = text.find('-');
    if (dash == std::string_view::npos) {
        if (!base::parse_bytes(text, range.first)) return std::nullopt;
        range.last = range.first;
        return range;
    }
    std::string_view first = text.substr(0, dash), last = text.substr(dash + 1);
    if (first.empty() && last.empty()) return std::nullopt;
    if (!first.empty() && !base::parse_bytes(first, range.first)) return std::nullopt;
    if (!last.empty() && !base::parse_bytes(last, range.last)) return std::nullopt;
    if (range.first > range.last) return std::nullopt;
    return range;
}

}  // namespace coco::policy
