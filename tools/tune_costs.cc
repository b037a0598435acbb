// SPDX-License-Identifier: BSD-3-Clause
#include "tools/tune_costs.h"

#include <algorithm>
#include <cmath>

namespace coco::tools {
namespace {

using policy::Choice;

// A time as a logarithm, of which means and differences are taken, and the variance of that.
struct LogTime {
    double log = kUnknown, variance = 0;
};

// A median's standard deviation is 1.25 times that of a mean, and the quartiles of a normal distribution are
// 1.35 deviations apart. A few samples say nothing about their own spread: it is assumed to be wide, so that
// chance makes no rules of them.
LogTime log_of(const Figure& figure) {
    constexpr std::size_t kLeastSamples = 5;
    constexpr double kOfQuartiles = 1.25 / 1.35;
    constexpr double kAssumedSpread = 0.3;
    const double spread =
        figure.samples < kLeastSamples ? kAssumedSpread : (figure.high_ns - figure.low_ns) / figure.median_ns;
    const double deviation = kOfQuartiles * spread / std::sqrt(static_cast<double>(figure.samples));
    return {std::log(figure.median_ns), deviation * deviation};
}

struct Times {
    std::optional<Figure> warm, cold;
};
using TimesAtSize = std::vector<Times>;  // by candidate

std::size_t index_of(const std::vector<Choice>& candidates, const Choice& choice) {
    return static_cast<std::size_t>(std::ranges::find(candidates, choice) - candidates.begin());
}

std::vector<Choice> all_candidates(const TuneReport& report) {
    std::vector<Choice> all{Choice{}};  // the MPI library's own function
    for (const TunedCell& cell : report.cells)
        for (const Figure& figure : cell.candidates)
            if (index_of(all, figure.choice) == all.size()) all.push_back(figure.choice);
    return all;
}

// The cells of one collective and size.
TimesAtSize times_at(const TuneReport& report, const std::vector<Choice>& candidates,
                     algorithms::Collective collective, std::uint64_t block_bytes) {
    TimesAtSize times(candidates.size());
    for (const TunedCell& cell : report.cells) {
        if (cell.collective != collective || cell.block_bytes != block_bytes) continue;
        for (const Figure& figure : cell.candidates) {
            Times& t = times[index_of(candidates, figure.choice)];
            (cell.is_cold ? t.cold : t.warm) = figure;
        }
    }
    return times;
}

// The mean of both sorts. Where some candidate was measured with cold buffers, the others had been dropped
// before.
LogTime mean_of(const Times& times, bool has_cold) {
    if (!times.warm || (has_cold && !times.cold)) return {};
    const LogTime warm = log_of(*times.warm);
    if (!has_cold) return warm;
    const LogTime cold = log_of(*times.cold);
    return {(warm.log + cold.log) / 2, (warm.variance + cold.variance) / 4};
}

Column column_of(const TimesAtSize& times) {
    const bool has_cold = std::ranges::any_of(times, [](const Times& t) { return t.cold.has_value(); });
    std::vector<LogTime> means;
    for (const Times& t : times) means.push_back(mean_of(t, has_cold));
    const LogTime best = *std::ranges::min_element(means, {}, &LogTime::log);
    Column column;
    for (const LogTime& mean : means) {
        const double loss = mean.log == kUnknown ? kUnknown : mean.log - best.log;
        const double doubt = 2 * std::sqrt(mean.variance + best.variance);
        column.costs.push_back(std::exp(loss));
        column.sure_costs.push_back(std::exp(std::max(0.0, loss - doubt)));
    }
    return column;
}

policy::Facts facts_at(const TuneReport& report, const Costs& costs, std::uint64_t block_bytes) {
    policy::Facts facts = report.facts;
    facts.collective = costs.collective;
    facts.block_bytes = is_size_known(costs.collective) ? std::optional(block_bytes) : std::nullopt;
    facts.degree = costs.degree;
    facts.calls = UINT64_MAX;
    return facts;
}

std::size_t preferred_of(const Column& column, const std::vector<Choice>& candidates, const Choice& present) {
    const auto best = static_cast<std::size_t>(std::ranges::min_element(column.costs) - column.costs.begin());
    if (candidates[best].algorithm == nullptr) return best;
    const std::size_t number = index_of(candidates, present);
    return number < candidates.size() && column.allows(number) ? number : best;
}

void add_size(CostTable& table, Costs& costs, const TuneReport& report, const policy::Policy& policy,
              std::uint64_t block_bytes) {
    const TimesAtSize times = times_at(report, table.candidates, costs.collective, block_bytes);
    Column column = column_of(times);
    if (*std::ranges::min_element(column.costs) == kUnknown) return;
    const Choice present = policy::select(policy, facts_at(report, costs, block_bytes)).choice;
    column.preferred = preferred_of(column, table.candidates, present);
    costs.sizes.push_back(block_bytes);
    costs.columns.push_back(std::move(column));
    std::vector<double>& shown = costs.times_ns.emplace_back();
    for (const Times& t : times) shown.push_back(t.warm ? t.warm->median_ns : kUnknown);
}

}  // namespace

bool is_size_known(algorithms::Collective collective) {
    return !is_sized(collective) || !is_neighbor(collective);
}

CostTable costs_of(const TuneReport& report, const policy::Policy& policy) {
    CostTable table{all_candidates(report), {}};
    for (const TunedCell& cell : report.cells) {
        std::vector<Costs>& all = table.collectives;
        if (all.empty() || all.back().collective != cell.collective)
            all.push_back({cell.collective, cell.degree, {}, {}, {}});
        if (all.back().sizes.empty() || all.back().sizes.back() != cell.block_bytes)
            add_size(table, all.back(), report, policy, cell.block_bytes);
    }
    return table;
}

}  // namespace coco::tools
