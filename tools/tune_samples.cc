// SPDX-License-Identifier: BSD-3-Clause
#include "tools/tune_samples.h"

#include <algorithm>

namespace coco::tools {
namespace {

constexpr double kSlow = 1.5;
constexpr std::size_t kLeastJudged = 2, kLeastSettled = 9;  // samples
constexpr double kNarrow = 0.03;                            // between the quartiles, of the median
constexpr double kApart = 1.15;

struct Weighted {
    double value, weight;
};

// The value below which that part of the weight lies; between two values' middles it goes up evenly.
double quantile(const std::vector<Weighted>& sorted, double part) {
    double all = 0, before = 0;
    for (const Weighted& one : sorted) all += one.weight;
    const Weighted* last = nullptr;
    double last_middle = 0;
    for (const Weighted& one : sorted) {
        const double middle = (before + one.weight / 2) / all;
        if (middle >= part)
            return last == nullptr ? one.value
                                   : last->value + (one.value - last->value) * (part - last_middle) /
                                                       (middle - last_middle);
        before += one.weight;
        last = &one;
        last_middle = middle;
    }
    return last->value;
}

Figure figure_of(const policy::Choice& choice, std::span<const std::vector<double>> passes_ns) {
    std::vector<Weighted> sorted;
    for (const std::vector<double>& pass : passes_ns)
        for (double ns : pass) sorted.push_back({ns, 1 / static_cast<double>(pass.size())});
    std::ranges::sort(sorted, {}, &Weighted::value);
    return {choice, sorted.size(), quantile(sorted, 0.5), quantile(sorted, 0.25), quantile(sorted, 0.75)};
}

// Of this pass alone.
Figure figure_now(const Contender& contender) {
    return figure_of(contender.choice, std::span(contender.passes_ns).last(1));
}
const std::vector<double>& samples_now(const Contender& contender) { return contender.passes_ns.back(); }

// Of those that are in and have samples; null: none has.
const Contender* best_of(std::span<const Contender> contenders) {
    const Contender* best = nullptr;
    double best_ns = 0;
    for (const Contender& contender : contenders) {
        if (contender.is_out || samples_now(contender).empty()) continue;
        const double median_ns = figure_now(contender).median_ns;
        if (best != nullptr && median_ns >= best_ns) continue;
        best = &contender;
        best_ns = median_ns;
    }
    return best;
}

}  // namespace

bool Contender::has_samples() const {
    return std::ranges::any_of(passes_ns, [](const auto& pass) { return !pass.empty(); });
}

void begin_pass(std::span<Contender> contenders) {
    for (Contender& contender : contenders) {
        contender.is_out = false;
        contender.passes_ns.emplace_back();
    }
}

Figure figure_of(const Contender& contender) { return figure_of(contender.choice, contender.passes_ns); }

void drop_slow(std::span<Contender> contenders) {
    const Contender* best = best_of(contenders);
    if (best == nullptr) return;
    const double best_ns = figure_now(*best).median_ns;
    for (Contender& contender : contenders) {
        if (&contender == best || samples_now(contender).size() < kLeastJudged) continue;
        if (*std::ranges::min_element(samples_now(contender)) > kSlow * best_ns) contender.is_out = true;
    }
}

bool is_settled(std::span<const Contender> contenders) {
    const Contender* best = best_of(contenders);
    if (best == nullptr) return true;
    const double best_high_ns = figure_now(*best).high_ns;
    return std::ranges::all_of(contenders, [&](const Contender& contender) {
        if (contender.is_out) return true;
        if (samples_now(contender).size() < kLeastSettled) return false;
        const Figure figure = figure_now(contender);
        return figure.high_ns - figure.low_ns < kNarrow * figure.median_ns ||
               (&contender != best && figure.low_ns > kApart * best_high_ns);
    });
}

}  // namespace coco::tools
