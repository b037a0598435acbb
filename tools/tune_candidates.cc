// SPDX-License-Identifier: BSD-3-Clause
#include "tools/tune_candidates.h"

#include <algorithm>
#include <sstream>

#include "choose/choices.h"

namespace coco::tools {
namespace {

using algorithms::Algorithm;
using algorithms::Parameter;
using policy::Choice;
using policy::Facts;

// Worth trying besides all algorithms with their presets.
constexpr const char* kTried =
    "bruck:radix=4 bruck:radix=8 sloav:radix=4 sloav:radix=8 "
    "sloavx:radix=4 sloavx:leaders=2 sloavx:radix=4,leaders=2 "
    "leader:bruck leader:bruck,radix=4 leader:multinode_morton leader:leaders=2 "
    "leader:bruck,radix=4,leaders=2 leader:bruck,radix=4,leaders=4 "
    "multileader:leaders=2 multileader:leaders=4 aggregate:leaders=1 aggregate:leaders=2 combining:depth=0";
constexpr const char* kTriedForBcast =
    "leader:route=tree leader:route=tree,radix=4 leader:route=chain leader:route=scatter leader:segment=64K "
    "segmented:segment=16K segmented:segment=64K";

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
    std::istringstream tried(is_rooted(facts.collective) ? kTriedForBcast : kTried);
    for (std::string text; tried >> text;)
        if (text.starts_with(name + ":")) try_out(text);
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
