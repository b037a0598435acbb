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
//
// A lap's time is that from the last rank's arrival at its first call to the last rank's arrival at the call
// behind it: so no cost can hide in the next call, in computing or in other functions. The same less the
// longest that a rank was outside our calls is more exact, and blind to costs outside. Decision 25 says why
// the account bounds what learning costs.
//
// Which candidate a call goes to depends on its number and on agreed boards alone, so all ranks choose alike.
//
//   rest --(ranks meet, and an account covers a look, or nearly)--> look --(ranks meet, and judge)--> rest
//   rest --(ranks meet, and none does)--> rest
//   rest, look --(ranks meet, and one gives up)--> the rules' choice for good
//
// Called by choices.cc. Knows no clock and no other rank: tests play millions of calls in virtual time.
// Thread safety: that of the communicator. Never fails.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace coco::choose {

constexpr int kCandidatesMost = 3;

// How far the challenger's time is above the incumbent's in the last looks, as a share of the longer one.
struct Series {
    double count = 0, mean = 0, squares = 0;
    void add(double challenger_ns, double incumbent_ns);
    // The same after the two have changed places.
    Series turned_round() const { return {count, -mean, squares}; }
    // By how many standard deviations the challenger is faster.
    double z() const;
};

struct OfCandidate {
    // Of a call in the last look that has compared it: by both laps, and by the shorter and the longer one.
    // 0: none has.
    std::int64_t time_ns = 0, low_ns = 0, high_ns = 0;
    Series whole, calls;    // of the program's time, and of the part of it that calls took
    double excess_ns = 0;   // of a call in the last look
    double balance_ns = 0;  // of its account
};

// What a learner knows between two looks. All members have eight bytes: so numbers tell it to other ranks.
struct Knowledge {
    std::int64_t incumbent = 0;
    // The calls on earlier communicators; how many looks have begun, how many of them have shown something,
    // and how often the incumbent has changed.
    std::uint64_t calls = 0, looks = 0, results = 0, changes = 0;
    double spent_ns = 0;
    // Of a call of the incumbent with all that lies before the next one, of the call alone, and of a
    // meeting. 0: not known.
    double whole_ns = 0, call_ns = 0, meeting_ns = 0;
    std::uint64_t rest = 0;  // calls that are left before the next meeting
    OfCandidate of[kCandidatesMost];

    // How many numbers tell it where there are so many candidates.
    static constexpr std::size_t size(std::size_t candidates) {
        return (sizeof(Knowledge) - (kCandidatesMost - candidates) * sizeof(OfCandidate)) /
               sizeof(std::int64_t);
    }
};
static_assert(std::is_trivially_copyable_v<Knowledge> && std::is_standard_layout_v<Knowledge> &&
              sizeof(OfCandidate) == 11 * 8 &&
              sizeof(Knowledge) == 10 * 8 + kCandidatesMost * sizeof(OfCandidate));

class Learner {
  public:
    // shares_cpus: ranks take turns on processors, so that laps must outlast their turns. is_restless: for
    // tests, it has looks all the time, and follows nothing but its whims. first_call, now_ns: the call with
    // which it begins, and when. With one candidate it never meets.
    Learner(int candidates, bool shares_cpus, bool is_restless, std::uint64_t first_call,
            std::int64_t now_ns);

    // Goes on from what a learner with as many candidates knew. Requires: the same numbers on all ranks; no
    // call was made.
    void go_on_from(std::span<const std::int64_t> knowledge);
    // What it knows before this call, with its own calls; a look that is under way counts as one that shows
    // nothing.
    Knowledge knowledge_before(std::uint64_t call) const;
    // As of the last meeting.
    const Knowledge& known() const { return known_; }

    struct Span {
        int candidate;
        std::uint64_t last_call;  // of this span: calls are numbered from 1
        bool is_measured;         // each call's begin and end shall be noted
    };
    // Requires: must_meet() is false.
    Span span(std::uint64_t call) const;
    void note(std::uint64_t call, std::int64_t begin_ns, std::int64_t end_ns);

    // Whether the ranks must meet before this call: they agree on board() and decide().
    bool must_meet(std::uint64_t call) const { return call >= end_; }
    // Of this rank, as it comes to the meeting; to be replaced by the largest of each number on any rank, but
    // the last one by how long a meeting takes.
    std::span<std::int64_t> board(std::int64_t now_ns);
    // Requires: must_meet(call); the board is agreed. now_ns: behind the meeting.
    void decide(std::uint64_t call, std::span<const std::int64_t> board, std::int64_t now_ns);
    // Has all ranks stay with the rules' choice for good from the next meeting on.
    void ask_to_give_up() { gives_up_ = true; }
    bool gave_up() const { return end_ == UINT64_MAX; }

  private:
    static constexpr int kLaps = 4;
    // A board has when a rank came to the call behind each lap, the one that is not counted first; how long
    // it was outside our calls in each other lap; a mark, and how long a meeting takes. Before a look it has
    // when the rest ended in place of the first lap, and what else it has means nothing.
    enum Number { kEnds, kOutsides = kEnds + kLaps + 1, kMark = kOutsides + kLaps, kMeeting, kNumbers };
    enum Mark : std::int64_t { kGood, kVoid, kGivesUp };

    bool is_resting() const { return lap_calls_ == 0; }
    OfCandidate& challenger() { return known_.of[challenger_]; }
    std::uint64_t calls_of_lap(int challenger) const;
    double expected_cost_ns(int challenger) const;
    double income_ns() const;
    double missing_ns(int challenger) const;
    int next_challenger() const;
    void earn(std::uint64_t call);
    void end_lap(std::uint64_t lap, std::int64_t now_ns, std::int64_t outside_ns);
    bool shall_look(std::uint64_t call, double rest_ns);
    void look(std::uint64_t call, std::int64_t now_ns);
    void judge(std::span<const std::int64_t> board);
    void charge(double cost_ns);
    void charge_void(double took_ns);
    void change_to_challenger();
    void rest(std::uint64_t call, std::int64_t now_ns);

    const int candidates_;
    const bool shares_cpus_, is_restless_;
    Knowledge known_;
    int challenger_ = 1;
    // The rest or look under way: its first call and when that came, and the call behind it.
    std::uint64_t begin_, end_;
    std::int64_t began_ns_;
    // The look under way: the calls of a lap (0: at rest), those that were noted, when the last one ended,
    // and how long this rank was outside our calls in this lap.
    std::uint64_t lap_calls_ = 0, noted_ = 0;
    std::int64_t last_end_ns_ = 0, outside_ns_ = 0;
    std::int64_t board_[kNumbers] = {};
    bool gives_up_ = false;
};

}  // namespace coco::choose
