// SPDX-License-Identifier: BSD-3-Clause
#include "tools/tune_rules.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>

#include "base/env.h"

namespace coco::tools {
namespace {

using policy::Choice;
using policy::Range;
using policy::Rule;

// Candidates that cost so much more at most are worth trying where calls are learned from, and so many of
// them.
constexpr double kNearCost = 1.15;
constexpr std::size_t kNearMost = 2;
// Where blocks are so large, or so small, that what is best for them is best beyond, too.
constexpr std::uint64_t kLargeBytes = 256 << 10, kSmallBytes = 64;
// The call from which on an algorithm has calls that prepares itself at length; the built-in rules have the
// same.
constexpr std::uint64_t kPreparedFrom = 50;

// A way to cover the first columns.
struct Way {
    std::size_t stretches = 0, unpreferred = 0;
    double log_cost = 0;
    std::size_t first = 0, candidate = 0;  // of the last stretch

    auto worth() const { return std::tie(stretches, unpreferred, log_cost); }
};

}  // namespace

std::vector<Stretch> fewest_stretches(std::span<const Column> columns) {
    std::vector<std::optional<Way>> best(columns.size() + 1);  // by the number of columns covered
    best[0] = Way{};
    const std::size_t candidates = columns.empty() ? 0 : columns[0].costs.size();
    for (std::size_t first = 0; first < columns.size(); ++first) {
        if (!best[first]) continue;
        for (std::size_t c = 0; c < candidates; ++c) {
            Way way = *best[first];
            ++way.stretches;
            way.first = first;
            way.candidate = c;
            for (std::size_t i = first; i < columns.size() && columns[i].allows(c); ++i) {
                way.unpreferred += columns[i].preferred != c ? 1 : 0;
                way.log_cost += std::log(columns[i].costs[c]);
                if (!best[i + 1] || way.worth() < best[i + 1]->worth()) best[i + 1] = way;
            }
        }
    }
    std::vector<Stretch> stretches;
    if (!best.back()) return stretches;
    for (std::size_t end = columns.size(); end != 0; end = best[end]->first)
        stretches.push_back({best[end]->first, end - best[end]->first, best[end]->candidate});
    std::ranges::reverse(stretches);
    return stretches;
}

namespace {

// The costs of several collectives together: what a candidate costs where it costs most.
std::vector<Column> joint_columns(std::span<const Costs> collectives) {
    std::vector<Column> joint = collectives[0].columns;
    for (const Costs& costs : collectives.subspan(1))
        for (std::size_t s = 0; s < joint.size(); ++s) {
            for (std::size_t c = 0; c < joint[s].costs.size(); ++c) {
                const Column& other = costs.columns[s];
                joint[s].costs[c] = std::max(joint[s].costs[c], other.costs[c]);
                joint[s].sure_costs[c] = std::max(joint[s].sure_costs[c], other.sure_costs[c]);
            }
            if (joint[s].costs[costs.columns[s].preferred] < joint[s].costs[joint[s].preferred])
                joint[s].preferred = costs.columns[s].preferred;
        }
    return joint;
}

bool can_share_rules(const Costs& one, const Costs& other) {
    return one.sizes == other.sizes && one.degree == other.degree && is_size_known(one.collective) &&
           is_size_known(other.collective);
}

// The candidate that loses least where it loses most.
std::size_t best_of_all_sizes(std::span<const Column> columns) {
    std::vector<double> most(columns[0].costs.size(), 1);
    for (const Column& column : columns)
        for (std::size_t c = 0; c < most.size(); ++c) most[c] = std::max(most[c], column.costs[c]);
    return static_cast<std::size_t>(std::ranges::min_element(most) - most.begin());
}

// Returns: nothing if these collectives cannot have the same rules.
std::vector<Stretch> stretches_of(std::span<const Costs> collectives) {
    const Costs& first = collectives[0];
    if (collectives.size() == 1 && !is_size_known(first.collective))
        return {{0, first.columns.size(), best_of_all_sizes(first.columns)}};
    for (const Costs& costs : collectives.subspan(1))
        if (!can_share_rules(first, costs)) return {};
    return fewest_stretches(joint_columns(collectives));
}

}  // namespace

std::vector<Group> fewest_groups(const CostTable& table) {
    struct Partition {
        std::size_t stretches = 0;
        Group last = {};
    };
    const std::span<const Costs> all = table.collectives;
    std::vector<Partition> best(all.size() + 1);  // by the number of collectives covered
    for (std::size_t end = 1; end <= all.size(); ++end)
        // Small groups first: a larger one must save a rule.
        for (std::size_t first = end; first-- > 0;) {
            std::vector<Stretch> stretches = stretches_of(all.subspan(first, end - first));
            const std::size_t sum = best[first].stretches + stretches.size();
            if (!stretches.empty() && (best[end].stretches == 0 || sum < best[end].stretches))
                best[end] = {sum, {first, end - first, std::move(stretches)}};
        }
    std::vector<Group> groups;
    for (std::size_t end = all.size(); end != 0; end = groups.back().first) groups.push_back(best[end].last);
    std::ranges::reverse(groups);
    return groups;
}

std::string us_text(double ns) {
    char text[32];
    const double us = ns / 1000;
    std::snprintf(text, sizeof text, us < 100 ? "%.3g" : "%.0f", us);
    return text;
}

namespace {

Range block_range(const std::vector<std::uint64_t>& sizes, const Stretch& stretch) {
    const std::size_t end = stretch.first + stretch.columns;
    Range range;
    if (stretch.first != 0)
        range.first = sizes[stretch.first - 1] + 1;
    else if (sizes[0] > kSmallBytes)
        range.first = sizes[0] / 2 + 1;
    if (end != sizes.size() || sizes.back() < kLargeBytes) range.last = sizes[end - 1];
    return range;
}

// The geometric mean of what a candidate costs at these sizes, where it costs most.
double mean_cost(std::span<const Column> columns, std::size_t candidate) {
    double logs = 0;
    for (const Column& column : columns) logs += std::log(column.costs[candidate]);
    return std::exp(logs / static_cast<double>(columns.size()));
}

std::vector<Choice> near_choices(const CostTable& table, std::span<const Column> columns,
                                 std::size_t chosen) {
    const double most = kNearCost * mean_cost(columns, chosen);
    std::vector<std::pair<double, std::size_t>> near;
    for (std::size_t c = 0; c < table.candidates.size(); ++c)
        if (const double cost = mean_cost(columns, c);
            c != chosen && table.candidates[c].algorithm != nullptr && cost <= most)
            near.emplace_back(cost, c);
    std::ranges::sort(near);
    near.resize(std::min(near.size(), kNearMost));
    std::vector<Choice> choices;
    for (const auto& [cost, c] : near) choices.push_back(table.candidates[c]);
    return choices;
}

// What a choice is compared with for people: the MPI library's own function or, if that was chosen, the best
// of ours.
std::size_t rival_of(const CostTable& table, const std::vector<double>& times_ns, std::size_t chosen) {
    std::size_t rival = chosen;
    for (std::size_t c = 0; c < times_ns.size(); ++c) {
        const bool is_mpi = table.candidates[c].algorithm == nullptr;
        if (c == chosen || is_mpi == (table.candidates[chosen].algorithm == nullptr)) continue;
        if (is_mpi) return c;
        if (rival == chosen || times_ns[c] < times_ns[rival]) rival = c;
    }
    return rival;
}

// With the times at the middle one of the sizes.
std::string reason_of(const CostTable& table, const Group& group, const Stretch& stretch,
                      const std::string& date) {
    const Costs& costs = table.collectives[group.first];
    const std::size_t size = (2 * stretch.first + stretch.columns - 1) / 2, chosen = stretch.candidate;
    const std::vector<double>& times_ns = costs.times_ns[size];
    const std::size_t rival = rival_of(table, times_ns, chosen);
    std::string reason = "tuned " + date + ": ";
    if (group.count > 1) reason.append(base::name_of(costs.collective)).append(" ");
    reason += us_text(times_ns[chosen]) + " us";
    if (rival != chosen && times_ns[rival] != kUnknown)
        reason += " against " + policy::text_of(table.candidates[rival]) + " " + us_text(times_ns[rival]);
    return reason + " at " + base::bytes_text(costs.sizes[size]);
}

bool prepares_at_length(const Choice& choice) {
    return choice.algorithm != nullptr && (choice.algorithm->needs_bundles() || choice.algorithm->combines());
}

// The rules of a group for one of its stretches, one for each of its collectives.
void add_rules(Tuned& tuned, const TuneReport& report, const Group& group, const Stretch& stretch) {
    const CostTable& table = tuned.costs;
    const std::span<const Costs> members = group.members(table);
    const std::vector<Column> columns = joint_columns(members);
    auto exactly = [](auto value) {
        return Range{static_cast<std::uint64_t>(value), static_cast<std::uint64_t>(value)};
    };
    Rule rule{};
    rule.nodes = exactly(report.facts.nodes);
    rule.ranks = exactly(report.facts.ranks_per_node);
    rule.domains = exactly(report.facts.domains);
    rule.crowded = exactly(report.facts.crowded ? 1 : 0);
    if (members[0].degree) rule.degree = exactly(*members[0].degree);
    if (is_size_known(members[0].collective)) rule.block = block_range(members[0].sizes, stretch);
    rule.choice = table.candidates[stretch.candidate];
    if (prepares_at_length(rule.choice)) rule.calls.first = kPreparedFrom;
    rule.also =
        near_choices(table, std::span(columns).subspan(stretch.first, stretch.columns), stretch.candidate);
    rule.reason = reason_of(table, group, stretch, report.date);
    for (const Costs& member : members) {
        rule.collective = member.collective;
        tuned.rules.push_back(rule);
    }
}

}  // namespace

const Choice& Tuned::chosen(algorithms::Collective collective, std::uint64_t block_bytes) const {
    for (const Costs& one : costs.collectives)
        for (std::size_t size = 0; size < one.chosen.size(); ++size)
            if (one.collective == collective && one.sizes[size] == block_bytes)
                return costs.candidates[one.chosen[size]];
    return costs.candidates.front();
}

std::size_t Tuned::uncertain_sizes() const {
    constexpr double kTenth = 1.1;
    std::size_t uncertain = 0;
    for (const Costs& one : costs.collectives)
        for (std::size_t size = 0; size < one.chosen.size(); ++size) {
            const Column& column = one.columns[size];
            const std::size_t chosen = one.chosen[size];
            uncertain += column.allows(chosen) && column.costs[chosen] > kTenth ? 1 : 0;
        }
    return uncertain;
}

Tuned tune(const TuneReport& report, const policy::Policy& policy) {
    Tuned tuned{costs_of(report, policy), {}, {}};
    tuned.groups = fewest_groups(tuned.costs);
    for (const Group& group : tuned.groups)
        for (const Stretch& stretch : group.stretches) {
            add_rules(tuned, report, group, stretch);
            for (Costs& member : std::span(tuned.costs.collectives).subspan(group.first, group.count))
                member.chosen.insert(member.chosen.end(), stretch.columns, stretch.candidate);
        }
    return tuned;
}

}  // namespace coco::tools
