// SPDX-License-Identifier: BSD-3-Clause
#include "tools/tune_candidates.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "choose/choices.h"

namespace coco::tools {
namespace {

using algorithms::Algorithm;
using algorithms::Parameter;
using policy::Choice;
using policy::Facts;

// Parameters besides an algorithm's presets. Other algorithms have none that are worth trying.
struct Variants {
    std::string_view algorithm;
    bool for_bcast;
    std::span<const std::string_view> parameters;
};
constexpr std::string_view kRadixes[] = {"radix=4", "radix=8"};
constexpr std::string_view kLeaders[] = {"bruck",     "bruck,radix=4",           "multinode_morton",
                                         "leaders=2", "bruck,radix=4,leaders=2", "bruck,radix=4,leaders=4"};
constexpr std::string_view kRoutes[] = {"route=tree", "route=tree,radix=4", "route=chain", "route=scatter",
                                        "segment=64K"};
constexpr std::string_view kFewLeaders[] = {"leaders=2", "leaders=4"};
constexpr std::string_view kSloavx[] = {"radix=4", "leaders=2", "radix=4,leaders=2"};
constexpr std::string_view kSegments[] = {"segment=16K", "segment=64K"};
constexpr std::string_view kBundles[] = {"leaders=1", "leaders=2"};
constexpr std::string_view kDepths[] = {"depth=0"};
constexpr Variants kVariants[] = {
    {"bruck", false, kRadixes},     {"sloav", false, kRadixes},     {"sloavx", false, kSloavx},
    {"leader", false, kLeaders},    {"leader", true, kRoutes},      {"multileader", false, kFewLeaders},
    {"segmented", true, kSegments}, {"aggregate", false, kBundles}, {"combining", false, kDepths},
};

// Who exchanges messages by the parameters of a choice: all ranks, or the leaders of all nodes.
std::int64_t participants(const Choice& choice, const Facts& facts) {
    const std::int64_t ranks = std::int64_t{facts.nodes} * facts.ranks_per_node;
    if (!takes(*choice.algorithm, Parameter::leaders)) return ranks;
    return std::int64_t{facts.nodes} * std::max(choice.parameters.leaders, 1);
}

// Whether the choice does here what another one does, as the communicator or the block is too small for its
// parameters.
bool is_idle(const Choice& choice, const Facts& facts) {
    const algorithms::Parameters preset, parameters = choice.parameters;
    // With one domain it is morton.
    if (choice.algorithm->cut == schedule::Cut::domain_curves && facts.domains == facts.nodes) return true;
    if (parameters.radix > preset.radix && parameters.radix > participants(choice, facts)) return true;
    if (parameters.inner != preset.inner && participants(choice, facts) <= 2) return true;
    if (parameters.leaders >= facts.ranks_per_node && parameters.leaders > 1) return true;
    return parameters.segment_bytes != 0 && parameters.segment_bytes >= facts.block_bytes.value_or(0);
}

void add(std::vector<Choice>& all, const Choice& choice) {
    if (std::ranges::find(all, choice) == all.end()) all.push_back(choice);
}

void add_variants(std::vector<Choice>& all, const Algorithm& algorithm, const Facts& facts) {
    auto try_out = [&](const std::string& text) {
        Choice choice;
        if (policy::parse_choice(text, facts.collective, choice)) return;
        if (!is_idle(choice, facts)) add(all, choice);
    };
    const std::string name(algorithm.name);
    try_out(name);
    for (const Variants& variants : kVariants)
        if (variants.algorithm == name && variants.for_bcast == is_rooted(facts.collective))
            for (std::string_view parameters : variants.parameters)
                try_out(name + ":" + std::string(parameters));
}

}  // namespace

std::vector<Choice> candidates_for(const Facts& facts, const policy::Policy& policy) {
    std::vector<Choice> all{Choice{}};
    auto runs = [&](const Algorithm& algorithm) {
        return choose::runs_on(algorithm, facts.collective, facts.nodes > 1);
    };
    for (const Algorithm& algorithm : algorithms::registry())
        if (serves(algorithm, facts.collective) && runs(algorithm)) add_variants(all, algorithm, facts);
    const Choice present = policy::select(policy, facts).choice;
    if (present.algorithm == nullptr || runs(*present.algorithm)) add(all, present);
    return all;
}

}  // namespace coco::tools
