// SPDX-License-Identifier: BSD-3-Clause
#include "base/check.h"
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

using algorithms::Parameter;
using algorithms::Parameters;

std::optional<Error> read_bytes(std::string_view value, Choice& choice) {
    std::uint64_t bytes = 0;
    if (!base::parse_bytes(value, bytes) || bytes == 0)
        return Error{"must be bytes above 0, with K, M, G or T"};
    choice.parameters.segment_bytes = bytes;
    return std::nullopt;
}

template <std::int32_t Parameters::*number, std::uint64_t least>
std::optional<Error> read_number(std::string_view value, Choice& choice) {
    constexpr std::uint64_t kMost = 1 << 20;
    std::uint64_t read = 0;
    if (!base::parse_number(value, read) || read < least || read > kMost)
        return Error{"must be a number from " + std::to_string(least) + " to " + std::to_string(kMost)};
    choice.parameters.*number = static_cast<std::int32_t>(read);
    return std::nullopt;
}
std::optional<Error> read_inner(std::string_view value, Choice& choice) {
    auto inner = algorithms::inner_of(value);
    if (!inner) return Error{"must be pairwise, bruck or multinode_morton"};
    choice.parameters.inner = *inner;
    return std::nullopt;
}
std::optional<Error> read_route(std::string_view value, Choice& choice) {
    auto route = algorithms::route_of(value);
    if (!route) return Error{"must be route=cheapest, tree, chain or scatter"};
    choice.parameters.route = *route;
    return std::nullopt;
}

struct Reading {
    Parameter parameter;
    std::string_view prefix;  // before the value
    const char* form;
    std::optional<Error> (*read)(std::string_view value, Choice& choice);
};
// The word without a key comes last, as it matches whatever the others do not.
constexpr Reading kReadings[] = {
    {Parameter::segment, "segment=", "segment=BYTES", read_bytes},
    {Parameter::radix, "radix=", "radix=NUMBER", read_number<&Parameters::radix, 2>},
    {Parameter::leaders, "leaders=", "leaders=NUMBER", read_number<&Parameters::leaders, 0>},
    {Parameter::route, "route=", "route=WORD", read_route},
    {Parameter::threshold, "threshold=", "threshold=NUMBER", read_number<&Parameters::threshold, 1>},
    {Parameter::depth, "depth=", "depth=NUMBER", read_number<&Parameters::depth, 0>},
    {Parameter::window, "window=", "window=NUMBER", read_number<&Parameters::window, 1>},
    {Parameter::width, "width=", "width=NUMBER", read_number<&Parameters::width, 1>},
    {Parameter::inner, "", "pairwise, bruck or multinode_morton", read_inner},
};

std::string forms_for(const Choice& choice) {
    std::string forms;
    for (const Reading& r : kReadings)
        if (choice.algorithm != nullptr && takes(*choice.algorithm, r.parameter))
            forms.append(forms.empty() ? "" : "; ").append(r.form);
    return forms;
}

std::optional<Error> parse_parameter(std::string_view text, Choice& choice) {
    std::string quoted = "parameter '" + std::string(text) + "': ";
    std::string name(choice.algorithm == nullptr ? "mpi" : choice.algorithm->name), forms = forms_for(choice);
    if (forms.empty()) return Error{quoted + name + " takes none"};
    COCO_CHECK(choice.algorithm != nullptr, "parameters are those of an algorithm");
    for (const Reading& r : kReadings) {
        bool is_word = r.prefix.empty() && text.find('=') != std::string_view::npos;
        if (!takes(*choice.algorithm, r.parameter) || !text.starts_with(r.prefix) || is_word) continue;
        auto error = r.read(text.substr(r.prefix.size()), choice);
        return error ? Error{quoted + error->line} : error;
    }
    return Error{quoted + "must be " + forms + " for " + name};
}

}  // namespace

std::optional<Error> parse_choice(std::string_view text, algorithms::Collective collective, Choice& choice) {
    std::size_t colon = text.find(':');
    std::string_view name = text.substr(0, colon);
    Choice parsed{algorithms::find(name), {}};
    std::string must = ": must be one of " + choices_for(collective);
    if (parsed.algorithm == nullptr && name != "mpi")
        return Error{"unknown algorithm '" + std::string(name) + "'" + must};
    if (parsed.algorithm != nullptr && !algorithms::serves(*parsed.algorithm, collective))
        return Error{std::string(name) + " does not serve " + std::string(base::name_of(collective)) + must};
    while (colon != std::string_view::npos) {
        text.remove_prefix(colon + 1);
        colon = text.find(',');
        if (auto error = parse_parameter(text.substr(0, colon), parsed)) return error;
    }
    if (parsed.algorithm != nullptr) parsed.parameters = shortest(*parsed.algorithm, parsed.parameters);
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
