// SPDX-License-Identifier: BSD-3-Clause
#include "tools/tune_measure.h"

#include <algorithm>
#include <cmath>

#include "os/clock.h"

namespace coco::tools {
namespace {

// Of the budget that all contenders together may take to warm up.
constexpr double kWarmUpShare = 0.25;
// A round shall come so often in the time that there is, if batches need not be shorter or longer than these
// bounds.
constexpr double kRounds = 25;
constexpr double kShortestBatch_ns = 20e3, kLongestBatch_ns = 3e6;
constexpr double kMostCalls = 10'000;
constexpr std::size_t kMostWarmRounds = 30, kMostColdRounds = 60;

// The time of a call on this rank, the mean of a batch behind a barrier. is_cold: its buffers are as cool()
// left them; else what is sent is written anew before each call. Buffers that stay as they are would flatter
// algorithms whose ranks read them in place, as they would find them in their own caches.
double time_calls(const Calls& calls, int count, bool is_cold) {
    calls.job().barrier();
    std::uint64_t spent_ns = 0;
    for (int i = 0; i < count; ++i) {
        if (!is_cold) calls.write();
        const std::uint64_t begin_ns = os::now_ns();
        calls.make();
        spent_ns += os::now_ns() - begin_ns;
    }
    return static_cast<double>(spent_ns) / count;
}

// Times as ranks agree on them: whole picoseconds.
std::uint64_t agreed_form(double ns) { return static_cast<std::uint64_t>(std::llround(ns * 1000)); }
double from_agreed_form(std::uint64_t ps) { return static_cast<double>(ps) / 1000; }

double time_on_slowest(const Calls& calls, int count) {
    std::uint64_t number[] = {agreed_form(time_calls(calls, count, false))};
    calls.job().agree_on_largest(number);
    return std::max(from_agreed_form(number[0]), 1.0);
}

int batch_for(const std::vector<Contender>& contenders, const Contender& contender, double budget_ns) {
    const auto in = std::ranges::count_if(contenders, [](const Contender& c) { return !c.is_out; });
    const double batch_ns =
        std::clamp(budget_ns / (kRounds * static_cast<double>(in)), kShortestBatch_ns, kLongestBatch_ns);
    return static_cast<int>(std::clamp(batch_ns / contender.guess_ns, 1.0, kMostCalls));
}

// One sample of this rank.
double sample(const Calls& calls, const std::vector<Contender>& contenders, const Contender& contender,
              bool is_cold, double budget_ns) {
    constexpr double kLongCall_ns = 1e6;  // beside which the first call behind a change is like the others
    calls.choose(contender.choice);
    if (contender.guess_ns < kLongCall_ns) calls.make();
    if (!is_cold) return time_calls(calls, batch_for(contenders, contender, budget_ns), false);
    calls.cool();
    return time_calls(calls, 1, true);
}

struct Agreed {
    std::uint64_t spent_ns;
    bool is_asked_to_end;
};

// One round of all contenders that are in, beginning with another one each time. spent_ns: rank 0's clock
// decides.
Agreed play_round(const Calls& calls, std::vector<Contender>& contenders, bool is_cold, double budget_ns,
                  std::size_t round, std::uint64_t begin_ns) {
    std::vector<std::uint64_t> numbers(contenders.size() + 2);
    for (std::size_t i = 0; i < contenders.size(); ++i) {
        const std::size_t at = (i + round) % contenders.size();
        if (!contenders[at].is_out)
            numbers[at] = agreed_form(sample(calls, contenders, contenders[at], is_cold, budget_ns));
    }
    if (calls.job().rank() == 0) numbers[contenders.size()] = os::now_ns() - begin_ns;
    numbers[contenders.size() + 1] = Job::is_asked_to_end() ? 1 : 0;
    calls.job().agree_on_largest(numbers);
    for (std::size_t i = 0; i < contenders.size(); ++i)
        if (!contenders[i].is_out) contenders[i].passes_ns.back().push_back(from_agreed_form(numbers[i]));
    return {numbers[contenders.size()], numbers[contenders.size() + 1] != 0};
}

// Those of which nobody knows anything, and the likely best ones, come first: by them the others are judged.
std::vector<Contender*> in_order_of_guess(std::vector<Contender>& contenders) {
    std::vector<Contender*> order;
    for (Contender& contender : contenders) order.push_back(&contender);
    std::ranges::stable_sort(order, {}, [](const Contender* contender) { return contender->guess_ns; });
    return order;
}

// Some calls, fewer where they would take longer than `most_ns`, but two at least: the first one prepares,
// and may be disturbed. Returns: what a call takes when it is least disturbed.
double warm_up_one(const Calls& calls, const Contender& contender, double most_ns) {
    constexpr int kBatches = 3;
    constexpr double kBatchCalls = 4;
    calls.choose(contender.choice);
    double least_ns = time_on_slowest(calls, 1), spent_ns = least_ns;
    for (int batch = 0; batch < kBatches; ++batch) {
        const int count = static_cast<int>(
            std::clamp((most_ns - spent_ns) / least_ns, batch == 0 ? 1.0 : 0.0, kBatchCalls));
        if (count == 0) break;
        const double call_ns = time_on_slowest(calls, count);
        spent_ns += count * call_ns;
        least_ns = std::min(least_ns, call_ns);
    }
    return least_ns;
}

}  // namespace

std::uint64_t warm_up(const Calls& calls, std::vector<Contender>& contenders, std::uint64_t budget_ns) {
    constexpr double kHopeless = 4;
    const std::uint64_t begin_ns = os::now_ns();
    const double each_ns =
        kWarmUpShare * static_cast<double>(budget_ns) / static_cast<double>(contenders.size());
    double best_ns = 0;
    for (Contender* contender : in_order_of_guess(contenders)) {
        const bool is_mpi = contender->choice.algorithm == nullptr;
        // One call would take the time of many, by what was seen of smaller blocks. All is compared with the
        // MPI library's own function, so that has more time.
        const double most_ns = is_mpi ? static_cast<double>(budget_ns) : std::max(each_ns, 2 * best_ns);
        if (best_ns != 0 && contender->guess_ns > most_ns) {
            contender->is_out = true;
            continue;
        }
        contender->guess_ns = warm_up_one(calls, *contender, each_ns);
        if (best_ns == 0 || contender->guess_ns < best_ns) best_ns = contender->guess_ns;
        if (!is_mpi && contender->guess_ns > kHopeless * best_ns) {
            contender->passes_ns.back().push_back(contender->guess_ns);
            contender->is_out = true;
        }
    }
    std::uint64_t spent_ns = os::now_ns() - begin_ns;
    calls.job().tell_from_rank_0(spent_ns);
    return spent_ns;
}

bool measure(const Calls& calls, std::vector<Contender>& contenders, bool is_cold, std::uint64_t budget_ns) {
    const std::uint64_t begin_ns = os::now_ns();
    const std::size_t most_rounds = is_cold ? kMostColdRounds : kMostWarmRounds;
    for (std::size_t round = 0; round < most_rounds; ++round) {
        const Agreed agreed =
            play_round(calls, contenders, is_cold, static_cast<double>(budget_ns), round, begin_ns);
        drop_slow(contenders);
        if (agreed.is_asked_to_end) return true;
        if (agreed.spent_ns >= budget_ns || is_settled(contenders)) return false;
    }
    return false;
}

}  // namespace coco::tools
