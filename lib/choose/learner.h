// SPDX-License-Identifier: BSD-3-Clause
//
// Learning for one cell: calls of one collective, on one communicator, with blocks of about one size, that
// the rules choose alike for. Now and then some calls go to another candidate, and if that proves faster it
// becomes the incumbent.
//
//   candidate    what may be chosen for a call; number 0 is the rules' own choice
//   incumbent    the candidate that has all calls but those of looks
//   challenger   the candidate that a look compares with it
//   lap          so many calls of one candidate, one behind the other
//   look         a meeting, a lap of the incumbent that is not counted, laps incumbent, challenger,
//                challenger, incumbent, a meeting
//   meeting      all ranks agree on a board: numbers, of which the largest on any rank counts
//   account      of a challenger: time that its looks may cost, a share of the time in the cell's calls
//   knowledge    all of this as numbers, by which the learner of a later communicator goes on
//
// A lap's time is that from the last rank's arrival at its first call to the last rank's arrival at the call
// behind it: so no cost can hide in the next call, in computing or in other functions. The same less the
// longest that a rank was outside our calls is more exact, and blind to costs outside. Decision 25 says why
// the account bounds what learning costs.
//
// Which candidate a call goes to depends on its number and on agreed boards alone, so all ranks choose alike.
//
//   rest --(an account should cover a look)--> meeting --(it does, or nearly)--> laps --> meeting,
//   judgement --> rest
//
// Called by choices.cc. Knows no clock and no other rank: tests play millions of calls in virtual time.
// Thread safety: that of the communicator. Never fails.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/index.h"

namespace coco::choose {

class Learner {
  public:
    static constexpr int kCandidatesMost = 3;

    // shares_cpus: ranks take turns on processors, so that laps must outlast their turns. is_restless: for
    // tests, it has looks all the time, and follows nothing but its whims. first_call, now_ns: the call with
    // which it begins, and when. Requires: there are two candidates or more.
    Learner(int candidates, bool shares_cpus, bool is_restless, std::uint64_t first_call,
            std::int64_t now_ns);

    // How many numbers the knowledge of a learner with so many candidates has.
    static constexpr std::size_t knowledge_size(int candidates) {
        return kKnownOfAll + kKnownOfEach * base::index(candidates);
    }
    // Goes on from the knowledge of a learner with as many candidates. Requires: the same knowledge on all
    // ranks; no call was made.
    void go_on_from(std::span<const std::int64_t> knowledge);
    // Writes what it knows before this call.
    void write_knowledge(std::uint64_t call, std::vector<std::int64_t>& numbers) const;
    // Ends the look that is under way before this call, if any, as the communicator ends.
    void break_off(std::uint64_t call);

    struct Span {
        int candidate;
        std::uint64_t last_call;  // of this span: calls are numbered from 1
        bool is_measured;         // each call's begin and end shall be noted
    };
    // Requires: must_meet() is false.
    Span span(std::uint64_t call) const;
    void note(std::uint64_t call, std::int64_t begin_ns, std::int64_t end_ns);

    // Whether the ranks must meet before this call: they agree on board() and decide().
    bool must_meet(std::uint64_t call) const { return call >= (is_resting() ? rest_end_ : laps_end()); }
    // Of this rank, as it comes to the meeting; to be replaced by the largest of each number on any rank, but
    // the last one by how long a meeting takes.
    std::span<std::int64_t> board(std::int64_t now_ns);
    // Requires: must_meet(call); the board is agreed. now_ns: behind the meeting.
    void decide(std::uint64_t call, std::span<const std::int64_t> board, std::int64_t now_ns);
    // Has all ranks stay with the rules' choice for good from the next meeting on.
    void ask_to_give_up() { gives_up_ = true; }
    bool gave_up() const { return gave_up_; }

    int incumbent() const { return known_.incumbent; }
    // How many looks have begun, how many of them have shown something, and how often the incumbent has
    // changed.
    std::uint64_t looks() const { return known_.looks; }
    std::uint64_t results() const { return known_.results; }
    std::uint64_t changes() const { return known_.changes; }
    std::int64_t spent_ns() const { return static_cast<std::int64_t>(known_.spent_ns); }
    // How many calls others have made from whose knowledge it went on.
    std::uint64_t calls_before() const { return known_.calls; }
    // The time of a call of a candidate by the last look that has compared it; 0: none has.
    std::int64_t time_ns(int candidate) const { return of_[candidate].time_ns; }
    // The shorter and the longer one of its two laps there, by the call.
    struct Spread {
        std::int64_t low_ns = 0, high_ns = 0;
    };
    Spread spread(int candidate) const { return of_[candidate].spread; }

  private:
    static constexpr int kLaps = 4;
    // The largest numbers on any rank, of a look: when it came to the calls behind the first lap and behind
    // each other one, how long it was outside our calls in each of these, a mark, and how long a meeting
    // takes. A first meeting has how long the rest has lasted, and the last two.
    enum Number { kBorders, kOutsides = kBorders + kLaps + 1, kMark = kOutsides + kLaps, kMeeting, kNumbers };
    enum Mark : std::int64_t { kGood, kVoid, kGivesUp };
    // The program's time in a lap, and the part of it that calls took.
    struct Lap {
        double whole_ns, calls_ns;
    };
    struct Laps {
        std::uint64_t begin;  // the first call of the first lap
        std::uint64_t noted = 0;
        std::int64_t opened_ns, last_end_ns;
        std::int64_t outside_ns = 0;
        std::int64_t numbers[kNumbers] = {};
    };
    // How far the challenger's time is above the incumbent's, in the last looks: 0 if they are equal, 0.1 if
    // it is a tenth longer.
    struct Series {
        double count = 0, mean = 0, squares = 0;
        void add(double ratio);
        void turn_round() { mean = -mean; }
        // By how many standard deviations the challenger is faster.
        double z() const;
    };
    struct OfCandidate {
        std::int64_t time_ns = 0;
        Spread spread;
        Series whole, calls;
        double excess_ns = 0;   // of a call in the last look
        double balance_ns = 0;  // of its account
        bool was_probed = false;
    };
    struct Known {
        int incumbent = 0;
        std::uint64_t calls = 0, looks = 0, results = 0, changes = 0;
        double spent_ns = 0;
        // Of a call of the incumbent with all that lies before the next one, of the call alone, and of a
        // meeting. 0: not known.
        double whole_ns = 0, call_ns = 0, meeting_ns = 0;
        std::uint64_t rest = 0;  // calls
    };
    static constexpr std::size_t kKnownOfAll = 10, kKnownOfEach = 12;
    template <class Self, class Visit>
    static void visit_known(Self& self, Visit visit);

    bool is_resting() const { return laps_ == nullptr; }
    std::uint64_t laps_end() const { return laps_->begin + (kLaps + 1) * lap_calls_; }
    std::uint64_t calls_of_lap(int challenger) const;
    double expected_cost_ns(int challenger) const;
    double income_ns() const;
    double missing_ns(int challenger) const;
    int next_challenger() const;
    void earn(std::uint64_t call);
    void meet_first(std::uint64_t call, std::span<const std::int64_t> board, std::int64_t now_ns);
    void judge(std::span<const std::int64_t> board);
    void charge(double cost_ns);
    void charge_void(double took_ns);
    void change_to_challenger();
    void rest(std::uint64_t call, std::int64_t now_ns);
    void give_up();

    const int candidates_;
    const bool shares_cpus_, is_restless_;
    Known known_;
    OfCandidate of_[kCandidatesMost];
    int challenger_ = 1;
    std::uint64_t rest_end_;
    std::uint64_t earned_at_;      // the first call whose share of the time the accounts do not have yet
    std::uint64_t lap_calls_ = 0;  // of the look under way
    std::unique_ptr<Laps> laps_;   // of the look under way; null: at rest
    std::int64_t began_ns_;        // the rest
    std::int64_t first_[3] = {};   // a first meeting's numbers
    bool gives_up_ = false, gave_up_ = false;
};

}  // namespace coco::choose
