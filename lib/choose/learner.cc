// SPDX-License-Identifier: BSD-3-Clause
#include "choose/learner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace coco::choose {
namespace {

// All accounts together get half a hundredth of the time.
constexpr double kIncome = 0.005;
// A candidate's first calls may set up what others have: MPI libraries connect their ranks. So jobs, and
// collectives in them, that do not take some tenths of a second, or seconds where ranks share processors,
// never look at another candidate.
constexpr double kFirstCallsNs = 1e6, kFirstCallsNsWhereShared = 1e7;
// The call before which ranks meet to know what calls take.
constexpr std::uint64_t kFirstMeeting = 256, kFirstMeetingWhereShared = 1024, kFirstMeetingRestless = 8;
constexpr std::uint64_t kLeastRest = 32;
// A lap outlasts what a meeting and a change of candidates leave behind: ranks in step, others' data in
// caches. Where ranks share processors they need some turns to fall into their pace.
constexpr double kLapMeetings = 4, kLapNsWhereShared = 1e6;
constexpr std::uint64_t kProbeCalls = 2, kMostCalls = 4096;
// A challenger is followed where it is faster by so many standard deviations.
constexpr double kSurely = 3, kLikely = 1, kFewLooks = 2, kManyLooks = 8;
// What is believed before anything was seen: as if so many looks had been apart by a twentieth. A window of
// looks, so that costs that change are noticed.
constexpr double kPriorLooks = 2, kPriorApart = 0.05, kWindow = 16;
// A pause of the program costs a challenger no more than so many times the incumbent's time; a look counts
// as no more than twice or half.
constexpr double kMostTimes = 4, kMostApart = 0.7;
// What it takes to note a call.
constexpr double kNoteNs = 60;
// Times that ratios are taken of.
constexpr double kLeastNs = 1;

double at_least(double ns) { return std::max(ns, kLeastNs); }

template <class T>
std::int64_t number_of(const T& value) {
    if constexpr (std::is_floating_point_v<T>)
        return std::bit_cast<std::int64_t>(value);
    else
        return static_cast<std::int64_t>(value);
}

template <class T>
void set_from(std::int64_t number, T& value) {
    if constexpr (std::is_floating_point_v<T>)
        value = std::bit_cast<T>(number);
    else
        value = static_cast<T>(number);
}

}  // namespace

// Nearly the logarithm, by operations that are exact on all processors: ranks of unlike ones must judge
// alike.
void Learner::Series::add(double ratio) {
    const double value = std::clamp(2 * (ratio - 1) / (ratio + 1), -kMostApart, kMostApart);
    if (count == kWindow) {
        --count;
        squares *= count / kWindow;
    }
    ++count;
    const double apart = value - mean;
    mean += apart / count;
    squares += apart * (value - mean);
}

double Learner::Series::z() const {
    if (count == 0) return 0;
    const double variance = (kPriorLooks * kPriorApart * kPriorApart + squares) / (kPriorLooks + count - 1);
    return -mean / std::sqrt(variance / count);
}

Learner::Learner(int candidates, bool shares_cpus, bool is_restless, std::uint64_t first_call,
                 std::int64_t now_ns)
    : candidates_(candidates),
      shares_cpus_(shares_cpus),
      is_restless_(is_restless),
      rest_end_(first_call + (is_restless   ? kFirstMeetingRestless
                              : shares_cpus ? kFirstMeetingWhereShared
                                            : kFirstMeeting)),
      earned_at_(first_call),
      began_ns_(now_ns) {}

Learner::Span Learner::span(std::uint64_t call) const {
    if (is_resting()) return {known_.incumbent, rest_end_ - 1, false};
    const std::uint64_t lap = (call - laps_->begin) / lap_calls_;
    return {lap == 2 || lap == 3 ? challenger_ : known_.incumbent, laps_->begin + (lap + 1) * lap_calls_ - 1,
            true};
}

void Learner::note(std::uint64_t call, std::int64_t begin_ns, std::int64_t end_ns) {
    if (is_resting() || call < laps_->begin || call >= laps_end()) return;
    const std::uint64_t at = call - laps_->begin, lap = at / lap_calls_;
    laps_->outside_ns += begin_ns - laps_->last_end_ns;
    laps_->last_end_ns = end_ns;
    ++laps_->noted;
    if (at % lap_calls_ != 0 || lap == 0) return;
    laps_->numbers[kBorders + lap - 1] = begin_ns - laps_->opened_ns;
    if (lap > 1) laps_->numbers[kOutsides + lap - 2] = laps_->outside_ns;
    laps_->outside_ns = 0;
}

std::span<std::int64_t> Learner::board(std::int64_t now_ns) {
    if (is_resting()) {
        first_[0] = now_ns - began_ns_;
        first_[1] = gives_up_ ? kGivesUp : kGood;
        return first_;
    }
    std::int64_t* const numbers = laps_->numbers;
    numbers[kBorders + kLaps] = now_ns - laps_->opened_ns;
    numbers[kOutsides + kLaps - 1] = laps_->outside_ns + now_ns - laps_->last_end_ns;
    numbers[kMark] = gives_up_ ? kGivesUp : laps_->noted == (kLaps + 1) * lap_calls_ ? kGood : kVoid;
    return laps_->numbers;
}

void Learner::decide(std::uint64_t call, std::span<const std::int64_t> board, std::int64_t now_ns) {
    if (board[board.size() - 2] == kGivesUp) return give_up();
    if (is_resting()) return meet_first(call, board, now_ns);
    known_.meeting_ns = static_cast<double>(board[kMeeting]);
    if (board[kMark] == kGood)
        judge(board);
    else
        charge_void(static_cast<double>(board[kBorders + kLaps]));
    rest(call, now_ns);
}

// It tells what calls took in the rest, with all that lies between them.
void Learner::meet_first(std::uint64_t call, std::span<const std::int64_t> board, std::int64_t now_ns) {
    known_.whole_ns = at_least(static_cast<double>(board.front()) / static_cast<double>(call - earned_at_));
    known_.meeting_ns = static_cast<double>(board.back());
    const bool is_first = known_.call_ns == 0;
    known_.call_ns = is_first ? known_.whole_ns : std::min(known_.call_ns, known_.whole_ns);
    earn(call);
    challenger_ = next_challenger();
    lap_calls_ = calls_of_lap(challenger_);
    // Calls may have become slower or faster in the rest: so nearly is enough.
    const bool is_covered = !is_first && missing_ns(challenger_) < expected_cost_ns(challenger_) / 4;
    if (!is_covered && !is_restless_) {
        charge(known_.meeting_ns);
        return rest(call, now_ns);
    }
    laps_ = std::make_unique<Laps>(Laps{.begin = call, .opened_ns = now_ns, .last_end_ns = now_ns});
    ++known_.looks;
}

std::uint64_t Learner::calls_of_lap(int challenger) const {
    if (is_restless_) return 1 + known_.looks % 3;
    if (!of_[challenger].was_probed) return kProbeCalls;
    const double lap_ns = std::max(kLapMeetings * known_.meeting_ns, shares_cpus_ ? kLapNsWhereShared : 0);
    return std::clamp(static_cast<std::uint64_t>(lap_ns / at_least(known_.whole_ns)), kProbeCalls,
                      kMostCalls);
}

// The one whose account covers its look first. So hopeless ones become rare by themselves.
int Learner::next_challenger() const {
    int next = known_.incumbent == 0 ? 1 : 0;
    for (int i = 0; i < candidates_; ++i) {
        const int c = (challenger_ + 1 + i) % candidates_;
        if (c != known_.incumbent && (next == challenger_ || missing_ns(c) < missing_ns(next))) next = c;
    }
    return next;
}

// Of each account, in a call. What lies between calls is other cells' time, too.
double Learner::income_ns() const { return kIncome / (candidates_ - 1) * at_least(known_.call_ns); }

double Learner::missing_ns(int challenger) const {
    return std::max(expected_cost_ns(challenger) - of_[challenger].balance_ns, 0.0);
}

double Learner::expected_cost_ns(int challenger) const {
    const auto calls = static_cast<double>(calls_of_lap(challenger));
    const OfCandidate& one = of_[challenger];
    // Twice as slow until a look of whole laps has shown it, or a probe at least that it is faster, where
    // one can.
    const bool seems_faster = !shares_cpus_ && one.excess_ns < -known_.call_ns / 10;
    const double least_ns = one.whole.count == 0 && !seems_faster ? known_.call_ns : 0;
    const double first_ns = one.was_probed ? 0 : shares_cpus_ ? kFirstCallsNsWhereShared : kFirstCallsNs;
    return first_ns + 2 * known_.meeting_ns + (kLaps + 1) * calls * kNoteNs +
           2 * calls * std::max(one.excess_ns, least_ns);
}

void Learner::judge(std::span<const std::int64_t> board) {
    Lap laps[kLaps];
    for (int i = 0; i < kLaps; ++i) {
        const auto whole_ns = static_cast<double>(board[kBorders + i + 1] - board[kBorders + i]);
        laps[i] = {at_least(whole_ns), at_least(whole_ns - static_cast<double>(board[kOutsides + i]))};
    }
    const auto calls = static_cast<double>(lap_calls_);
    auto note_times = [&](OfCandidate& one, const Lap& some, const Lap& other) {
        one.time_ns = static_cast<std::int64_t>(at_least((some.calls_ns + other.calls_ns) / (2 * calls)));
        const auto [low, high] = std::minmax(some.calls_ns, other.calls_ns);
        one.spread = {static_cast<std::int64_t>(low / calls), static_cast<std::int64_t>(high / calls)};
    };
    OfCandidate& challenger = of_[challenger_];
    note_times(of_[known_.incumbent], laps[0], laps[3]);
    note_times(challenger, laps[1], laps[2]);
    const Lap incumbents{laps[0].whole_ns + laps[3].whole_ns, laps[0].calls_ns + laps[3].calls_ns},
        challengers{laps[1].whole_ns + laps[2].whole_ns, laps[1].calls_ns + laps[2].calls_ns};
    const double call_ns = incumbents.calls_ns / (2 * calls);
    // A probe's calls may be slow as all first ones are.
    known_.call_ns = challenger.was_probed ? call_ns : std::min(call_ns, known_.call_ns);
    // No more than so, as the program may have paused.
    const double most_ns = kMostTimes * incumbents.whole_ns;
    const double excess_ns = std::max(std::min(challengers.whole_ns - incumbents.whole_ns, most_ns),
                                      challengers.calls_ns - incumbents.calls_ns);
    // Behind the first meeting ranks may have to fall into step.
    const double first_lap_ns =
        std::clamp(static_cast<double>(board[kBorders]) - calls * known_.whole_ns, 0.0, most_ns);
    charge(2 * known_.meeting_ns + (kLaps + 1) * calls * kNoteNs + first_lap_ns + excess_ns);
    // By its shorter lap: in the other one it may have set up something, or the program was stopped.
    challenger.excess_ns =
        (2 * std::min(laps[1].calls_ns, laps[2].calls_ns) - incumbents.calls_ns) / (2 * calls);
    ++known_.results;
    if (!std::exchange(challenger.was_probed, true)) return;
    challenger.whole.add(challengers.whole_ns / incumbents.whole_ns);
    challenger.calls.add(challengers.calls_ns / incumbents.calls_ns);
    const double whole = challenger.whole.z();
    if ((challenger.whole.count >= kFewLooks && challenger.calls.z() > kSurely && whole > kLikely) ||
        (challenger.whole.count >= kManyLooks && whole > kSurely))
        change_to_challenger();
}

// Of a look in which some rank has missed calls, which took so long.
void Learner::charge_void(double took_ns) {
    const auto calls = static_cast<double>(lap_calls_);
    const double more_ns = took_ns - (kLaps + 1) * calls * known_.whole_ns;
    charge(std::max(expected_cost_ns(challenger_), more_ns));
    of_[challenger_].excess_ns = std::max(of_[challenger_].excess_ns, more_ns / (2 * calls));
}

// Less than nothing, too, where the challenger is the faster one: so noise counts as nothing in the sum of
// all looks.
void Learner::charge(double cost_ns) {
    of_[challenger_].balance_ns -= cost_ns;
    known_.spent_ns += cost_ns;
}

// What is known of a third candidate was found by comparing it with the old incumbent.
void Learner::change_to_challenger() {
    OfCandidate &was = of_[known_.incumbent], &is = of_[challenger_];
    for (int c = 0; c < candidates_; ++c)
        if (c != challenger_) of_[c].whole = of_[c].calls = {};
    std::swap(was.whole, is.whole);
    std::swap(was.calls, is.calls);
    was.whole.turn_round();
    was.calls.turn_round();
    was.excess_ns = -is.excess_ns;
    was.was_probed = true;
    was.balance_ns = 0;
    known_.call_ns = at_least(known_.call_ns + is.excess_ns);
    known_.incumbent = challenger_;
    ++known_.changes;
}

// An account holds no more than the next look costs, so that a candidate that has become slow does not use
// up what was saved for long.
void Learner::earn(std::uint64_t call) {
    if (call <= earned_at_) return;
    const double earned_ns = income_ns() * static_cast<double>(call - earned_at_);
    earned_at_ = call;
    for (int c = 0; c < candidates_; ++c)
        of_[c].balance_ns = std::min(of_[c].balance_ns + earned_ns, expected_cost_ns(c));
}

void Learner::rest(std::uint64_t call, std::int64_t now_ns) {
    earned_at_ = call;  // a look's own time earns nothing
    began_ns_ = now_ns;
    constexpr double kNever = 1e15;
    laps_.reset();
    if (is_restless_) {
        known_.incumbent =
            static_cast<int>((known_.looks * 7 + call) % static_cast<std::uint64_t>(candidates_));
        rest_end_ = call + 1 + known_.looks % 5;
        return;
    }
    const double calls = missing_ns(next_challenger()) / income_ns();
    rest_end_ = call + static_cast<std::uint64_t>(std::clamp(calls, static_cast<double>(kLeastRest), kNever));
}

void Learner::give_up() {
    laps_.reset();
    known_.incumbent = 0;
    rest_end_ = UINT64_MAX;
    gave_up_ = true;
}

// All that stays between two looks, in one order: kKnownOfAll numbers, and kKnownOfEach for each candidate.
template <class Self, class Visit>
void Learner::visit_known(Self& self, Visit visit) {
    auto& all = self.known_;
    visit(all.incumbent), visit(all.calls), visit(all.looks), visit(all.results), visit(all.changes);
    visit(all.spent_ns), visit(all.whole_ns), visit(all.call_ns);
    visit(all.meeting_ns), visit(all.rest);
    for (int c = 0; c < self.candidates_; ++c) {
        auto& one = self.of_[c];
        visit(one.time_ns), visit(one.spread.low_ns), visit(one.spread.high_ns);
        for (auto* series : {&one.whole, &one.calls})
            visit(series->count), visit(series->mean), visit(series->squares);
        visit(one.excess_ns), visit(one.balance_ns), visit(one.was_probed);
    }
}

void Learner::go_on_from(std::span<const std::int64_t> knowledge) {
    COCO_CHECK(knowledge.size() == knowledge_size(candidates_), "knowledge is that of as many candidates");
    const std::int64_t* number = knowledge.data();
    visit_known(*this, [&](auto& value) { set_from(*number++, value); });
    rest_end_ = earned_at_ + std::max(known_.rest, kLeastRest);
}

void Learner::break_off(std::uint64_t call) {
    if (is_resting()) return;
    charge(expected_cost_ns(challenger_));
    rest(call, 0);
}

void Learner::write_knowledge(std::uint64_t call, std::vector<std::int64_t>& numbers) const {
    Learner left(candidates_, shares_cpus_, is_restless_, earned_at_, 0);
    left.known_ = known_;
    std::ranges::copy(of_, left.of_);
    if (known_.call_ns != 0) left.earn(call);
    left.known_.calls += call - 1;
    left.known_.rest = rest_end_ > call ? rest_end_ - call : 0;
    numbers.resize(knowledge_size(candidates_));
    std::int64_t* number = numbers.data();
    visit_known(left, [&](const auto& value) { *number++ = number_of(value); });
}

}  // namespace coco::choose
