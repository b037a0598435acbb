// SPDX-License-Identifier: BSD-3-Clause
#include "choose/learner.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/index.h"

namespace coco::choose {
namespace {

// All accounts together get half a hundredth of the time; noting calls and errors have the other half.
constexpr double kIncome = 0.005;
// So long a rank waits for others: for their turns on a shared processor, or in a candidate's first calls,
// behind which MPI libraries connect ranks.
constexpr double kTurnNs = 1e6;
// Where ranks share processors connecting takes some turns. So jobs, and collectives in them, that do not
// take some tenths of a second, or seconds there, never look at another candidate.
constexpr double kTurnsToConnect = 10;
// The calls before ranks meet, even if an account has enough: they tell what calls take. A cell's first
// meeting, for which no account has saved, comes later, and last where ranks wait for turns to meet.
constexpr std::uint64_t kLeastRest = 32, kFirstRest = 8 * kLeastRest, kFirstRestWhereShared = 4 * kFirstRest;
// A lap outlasts what a meeting and a change of candidates leave behind: ranks in step, others' data in
// caches. Where ranks share processors they need a turn to fall into their pace.
constexpr double kLapMeetings = 4;
// The calls of a probe's lap, and the looks behind which a challenger may be followed: the least that show
// how far times are apart.
constexpr std::uint64_t kFew = 2;
// A challenger is followed where it is faster by so many standard deviations.
constexpr double kSurely = 3, kLikely = 1;
// What is believed before anything was seen: as if a few looks had been apart by a twentieth.
constexpr double kPriorApart = 0.05;
// So many looks count, so that costs that change are noticed. From half of them on the program's time alone
// may decide.
constexpr double kWindow = 16;
// What it takes to note a call, as measured.
constexpr double kNoteNs = 60;

// Times are divided by.
double at_least_1(double ns) { return std::max(ns, 1.0); }

}  // namespace

// By operations that are exact on all processors: ranks of unlike ones must judge alike.
void Series::add(double challenger_ns, double incumbent_ns) {
    const double value = (challenger_ns - incumbent_ns) / std::max(challenger_ns, incumbent_ns);
    if (count == kWindow) {
        --count;
        squares *= count / kWindow;
    }
    ++count;
    const double apart = value - mean;
    mean += apart / count;
    squares += apart * (value - mean);
}

double Series::z() const {
    if (count == 0) return 0;
    const double variance = (kFew * kPriorApart * kPriorApart + squares) / (kFew + count - 1);
    return -mean / std::sqrt(variance / count);
}

Learner::Learner(int candidates, bool shares_cpus, bool is_restless, std::uint64_t first_call,
                 std::int64_t now_ns)
    : candidates_(candidates),
      shares_cpus_(shares_cpus),
      is_restless_(is_restless),
      begin_(first_call),
      end_(candidates == 1 ? UINT64_MAX
                           : first_call + (is_restless   ? kFew
                                           : shares_cpus ? kFirstRestWhereShared
                                                         : kFirstRest)),
      began_ns_(now_ns) {}

Learner::Span Learner::span(std::uint64_t call) const {
    const int incumbent = static_cast<int>(known_.incumbent);
    if (is_resting()) return {incumbent, end_ - 1, false};
    const std::uint64_t lap = (call - begin_) / lap_calls_;
    return {lap == 2 || lap == 3 ? challenger_ : incumbent, begin_ + (lap + 1) * lap_calls_ - 1, true};
}

void Learner::note(std::uint64_t call, std::int64_t begin_ns, std::int64_t end_ns) {
    if (is_resting() || call < begin_ || call >= end_) return;
    const std::uint64_t at = call - begin_;
    outside_ns_ += begin_ns - last_end_ns_;
    last_end_ns_ = end_ns;
    ++noted_;
    if (at % lap_calls_ != 0 || at == 0) return;
    end_lap(at / lap_calls_ - 1, begin_ns, outside_ns_);
    outside_ns_ = 0;
}

void Learner::end_lap(std::uint64_t lap, std::int64_t now_ns, std::int64_t outside_ns) {
    board_[kEnds + lap] = now_ns - began_ns_;
    if (lap != 0) board_[kOutsides + lap - 1] = outside_ns;
}

std::span<std::int64_t> Learner::board(std::int64_t now_ns) {
    const bool is_whole = is_resting() || noted_ == end_ - begin_;
    end_lap(is_resting() ? 0 : kLaps, now_ns, outside_ns_ + now_ns - last_end_ns_);
    board_[kMark] = gives_up_ ? kGivesUp : is_whole ? kGood : kVoid;
    return board_;
}

void Learner::decide(std::uint64_t call, std::span<const std::int64_t> board, std::int64_t now_ns) {
    if (board[kMark] == kGivesUp) {
        known_.incumbent = 0;
        lap_calls_ = 0;
        end_ = UINT64_MAX;
        return;
    }
    known_.meeting_ns = static_cast<double>(board[kMeeting]);
    if (is_resting()) {
        if (shall_look(call, static_cast<double>(board[kEnds]))) return look(call, now_ns);
        charge(known_.meeting_ns);
    } else if (board[kMark] == kGood) {
        judge(board);
    } else {
        charge_void(static_cast<double>(board[kEnds + kLaps]));
    }
    rest(call, now_ns);
}

// The rest tells what calls took, with all that lies between them.
bool Learner::shall_look(std::uint64_t call, double rest_ns) {
    known_.whole_ns = at_least_1(rest_ns / static_cast<double>(call - begin_));
    const bool is_first = known_.call_ns == 0;
    known_.call_ns = is_first ? known_.whole_ns : std::min(known_.call_ns, known_.whole_ns);
    earn(call);
    challenger_ = next_challenger();
    // Calls may have become slower or faster in the rest: so nearly is enough.
    const bool is_covered = !is_first && missing_ns(challenger_) < expected_cost_ns(challenger_) / 4;
    return is_covered || is_restless_;
}

void Learner::look(std::uint64_t call, std::int64_t now_ns) {
    lap_calls_ = calls_of_lap(challenger_);
    begin_ = call;
    end_ = call + (kLaps + 1) * lap_calls_;
    began_ns_ = last_end_ns_ = now_ns;
    outside_ns_ = 0;
    noted_ = 0;
    ++known_.looks;
}

std::uint64_t Learner::calls_of_lap(int challenger) const {
    const bool is_probe = known_.of[challenger].time_ns == 0;
    if (is_probe || is_restless_) return kFew;
    const double lap_ns = std::max(kLapMeetings * known_.meeting_ns, shares_cpus_ ? kTurnNs : 0);
    return std::max(static_cast<std::uint64_t>(lap_ns / at_least_1(known_.whole_ns)), kFew);
}

// The one whose account covers its look first. So hopeless ones become rare by themselves.
int Learner::next_challenger() const {
    int next = -1;
    for (int i = 1; i <= candidates_; ++i) {
        const int c = (challenger_ + i) % candidates_;
        if (c != known_.incumbent && (next < 0 || missing_ns(c) < missing_ns(next))) next = c;
    }
    return next;
}

// Of each account, in a call. What lies between calls is other cells' time, too.
double Learner::income_ns() const { return kIncome / (candidates_ - 1) * at_least_1(known_.call_ns); }

double Learner::missing_ns(int challenger) const {
    return std::max(expected_cost_ns(challenger) - known_.of[challenger].balance_ns, 0.0);
}

double Learner::expected_cost_ns(int challenger) const {
    const auto calls = static_cast<double>(calls_of_lap(challenger));
    const OfCandidate& one = known_.of[challenger];
    const bool is_probe = one.time_ns == 0;
    // Twice as slow until a look has shown it. (Where ranks share processors a probe shows nothing.)
    const bool is_unknown = is_probe || (shares_cpus_ && one.whole.count == 0);
    const double first_ns = is_probe ? kTurnNs * (shares_cpus_ ? kTurnsToConnect : 1) : 0;
    return first_ns + 2 * known_.meeting_ns + (kLaps + 1) * calls * kNoteNs +
           2 * calls * std::max(one.excess_ns, is_unknown ? known_.call_ns : 0);
}

void Learner::judge(std::span<const std::int64_t> board) {
    const auto calls = static_cast<double>(lap_calls_);
    double whole_ns[kLaps], calls_ns[kLaps];
    for (int i = 0; i < kLaps; ++i) {
        whole_ns[i] = at_least_1(static_cast<double>(board[kEnds + i + 1] - board[kEnds + i]));
        calls_ns[i] = at_least_1(whole_ns[i] - static_cast<double>(board[kOutsides + i]));
    }
    auto note_times = [&](OfCandidate& one, double some_ns, double other_ns) {
        one.time_ns = static_cast<std::int64_t>(at_least_1((some_ns + other_ns) / (2 * calls)));
        one.low_ns = static_cast<std::int64_t>(std::min(some_ns, other_ns) / calls);
        one.high_ns = static_cast<std::int64_t>(std::max(some_ns, other_ns) / calls);
    };
    OfCandidate& one = challenger();
    const bool is_probe = one.time_ns == 0;
    note_times(known_.of[known_.incumbent], calls_ns[0], calls_ns[3]);
    note_times(one, calls_ns[1], calls_ns[2]);
    const double whole_of_incumbent_ns = whole_ns[0] + whole_ns[3],
                 whole_of_one_ns = whole_ns[1] + whole_ns[2], incumbent_ns = calls_ns[0] + calls_ns[3],
                 one_ns = calls_ns[1] + calls_ns[2];
    // A probe's calls may be slow as all first ones are.
    const double call_ns = incumbent_ns / (2 * calls);
    known_.call_ns = is_probe ? std::min(call_ns, known_.call_ns) : call_ns;
    // The program may have paused in one of two laps. A cost inside the calls counts wherever it was.
    const double more_ns = std::min(whole_ns[1], whole_ns[2]) - std::min(whole_ns[0], whole_ns[3]);
    const double excess_ns = std::max(2 * more_ns, one_ns - incumbent_ns);
    // Behind the first meeting ranks may have to fall into step, or the program pauses.
    const double first_lap_ns =
        std::clamp(static_cast<double>(board[kEnds]) - calls * known_.whole_ns, 0.0, whole_of_incumbent_ns);
    charge(2 * known_.meeting_ns + (kLaps + 1) * calls * kNoteNs + first_lap_ns + excess_ns);
    // By its shorter lap: in the other one it may have set up something, or the program was stopped.
    one.excess_ns = (2 * std::min(calls_ns[1], calls_ns[2]) - incumbent_ns) / (2 * calls);
    ++known_.results;
    if (is_probe) return;
    one.whole.add(whole_of_one_ns, whole_of_incumbent_ns);
    one.calls.add(one_ns, incumbent_ns);
    const double whole = one.whole.z();
    if ((one.whole.count >= kFew && one.calls.z() > kSurely && whole > kLikely) ||
        (one.whole.count >= kWindow / 2 && whole > kSurely))
        change_to_challenger();
}

// Of a look in which some rank has missed calls, which took so long.
void Learner::charge_void(double took_ns) {
    const auto calls = static_cast<double>(lap_calls_);
    const double more_ns = took_ns - (kLaps + 1) * calls * known_.whole_ns;
    charge(std::max(expected_cost_ns(challenger_), more_ns));
    challenger().excess_ns = std::max(challenger().excess_ns, more_ns / (2 * calls));
}

// The cost is below 0 where the challenger is the faster one: so noise cancels out over many looks.
void Learner::charge(double cost_ns) {
    challenger().balance_ns -= cost_ns;
    known_.spent_ns += cost_ns;
}

// What is known of a third candidate was found by comparing it with the old incumbent.
void Learner::change_to_challenger() {
    OfCandidate &was = known_.of[known_.incumbent], &is = challenger();
    const Series whole = is.whole.turned_round(), calls = is.calls.turned_round();
    for (OfCandidate& one : known_.of) one.whole = one.calls = {};
    was.whole = whole;
    was.calls = calls;
    was.excess_ns = -is.excess_ns;
    was.balance_ns = 0;
    known_.call_ns = at_least_1(known_.call_ns + is.excess_ns);
    known_.incumbent = challenger_;
    ++known_.changes;
}

// An account holds no more than the next look costs, so that a candidate that has become slow does not use
// up what was saved for long.
void Learner::earn(std::uint64_t call) {
    const double earned_ns = income_ns() * static_cast<double>(call - begin_);
    for (int c = 0; c < candidates_; ++c) {
        OfCandidate& one = known_.of[c];
        one.balance_ns = std::min(one.balance_ns + earned_ns, expected_cost_ns(c));
    }
}

void Learner::rest(std::uint64_t call, std::int64_t now_ns) {
    begin_ = call;  // a look's own time earns nothing
    began_ns_ = now_ns;
    lap_calls_ = 0;
    if (is_restless_) {
        known_.incumbent = static_cast<std::int64_t>((known_.looks + call) % base::index(candidates_));
        end_ = call + 1 + known_.looks % 5;
        return;
    }
    constexpr double kNever = 1e15;
    const double calls = missing_ns(next_challenger()) / income_ns();
    end_ = call + std::max(static_cast<std::uint64_t>(std::min(calls, kNever)), kLeastRest);
}

void Learner::go_on_from(std::span<const std::int64_t> knowledge) {
    COCO_CHECK(!gave_up(), "a learner that goes on has something to learn");
    COCO_CHECK(knowledge.size() == Knowledge::size(base::index(candidates_)),
               "knowledge is that of as many candidates");
    std::memcpy(static_cast<void*>(&known_), knowledge.data(), knowledge.size_bytes());
    end_ = begin_ + std::max(known_.rest, kLeastRest);
}

Knowledge Learner::knowledge_before(std::uint64_t call) const {
    Learner left = *this;
    if (is_resting()) {
        left.earn(call);
    } else {
        left.charge(expected_cost_ns(challenger_));
        left.rest(call, 0);
    }
    left.known_.calls += call - 1;
    left.known_.rest = left.end_ > call ? left.end_ - call : 0;
    return left.known_;
}

}  // namespace coco::choose
