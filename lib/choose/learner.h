// SPDX-License-Identifier: BSD-3-Clause
//
// Learning for one cell: calls of one collective, on one communicator, with blocks of about one size, that the rules choose
// alike for. A few calls go to another candidate, and if that proves faster it becomes the incumbent, which has all other calls.
//
//   candidate    what may be chosen for a call; number 0 is the rules' own choice
//   incumbent    the candidate that has all calls which are not tried out
//   challenger   the candidate that is being compared with it
//   board        what the ranks agree on: some numbers for each sample, of which the largest of all ranks counts
//   knowledge    what a learner knows behind its looks, as numbers: the learner of a later communicator goes on from there
//
// A look at a challenger is a probe of a few calls, and if that was not much slower a comparison: incumbent, challenger,
// incumbent, or more such turns, so that a drift falls on both. On one node the first look at several challengers is a survey, if nothing is
// known of any and no earlier job has learned: it probes all of them, which costs one agreement, and compares the fastest. Which candidate a call
// goes to depends on its number and on agreed boards alone, so all ranks choose alike. Looks are so far apart that they take kSpentShare of the time of the cell's calls, or, as long as
// a challenger was not compared and not found hopeless twice, kFirstShare (behind its first look alone, where an earlier job has learned), and less
// the more often it was found hopeless; decision 25 derives the bound.
//
// Called by choices.cc. Knows neither clocks nor ranks: tests play millions of calls in virtual time. Thread safety: that of the
// communicator. Never fails.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace coco::choose {

class Learner {
  public:
    static constexpr int kCandidatesMost = 4;
    static constexpr std::size_t kCallsMost = 256;  // of a sample
    // The first calls of a cell go to the rules' choice, more of them where a rank runs ahead of others: agreeing ends its lead.
    static constexpr std::uint64_t kFirstLook = 32, kFirstLookAtStretches = 256;
    static constexpr double kSpentShare = 0.005, kFirstShare = 0.1;
    // So many times as many come first where an earlier job has found that choice.
    static constexpr std::uint64_t kFirstLooksLaterIfKnown = 8;
    // A challenger that takes so many times as long is not compared.
    static constexpr double kHopeless = 2.0;

    // How the ranks' clocks are read.
    enum class Clocks : std::uint8_t {
        common,  // one for all ranks: from the last rank's entry to the last exit
        // A stretch of calls from exit to exit, less the longest that any rank was outside before each call; or with that, where it
        // is no measure of the candidates.
        apart,
        // A stretch of calls with all that lies between them but pauses, if all ranks make some, as ranks run ahead of others: the
        // longest of any rank.
        stretches,
        streams  // likewise, from one agreement to the next: ranks that run far ahead leave others much to catch up with
    };

    // How a cell begins.
    enum class Start : std::uint8_t {
        fresh,
        known,    // number 0 is what an earlier job has found to be the best: first looks may take their time
        restless  // for tests: it looks all the time, and follows nothing but its whims
    };

    Learner(int candidates, Clocks clocks, Start start = Start::fresh);

    // How many numbers the knowledge of a learner with so many candidates has.
    static constexpr std::size_t knowledge_size(int candidates) {
        return kKnownOfAll + kKnownOfEach * static_cast<std::size_t>(candidates);
    }
    // Goes on from the knowledge of a learner with as many candidates and the same clocks. Requires: the same knowledge on all ranks; no
    // call was made.
    void go_on_from(std::span<const std::int64_t> knowledge);
    // Writes what it knows before this call.
    void write_knowledge(std::uint64_t call, std::vector<std::int64_t>& numbers);
    // Ends the look that is under way before this call, if any, as the communicator ends.
    void break_off(std::uint64_t call);
    // How many probes and comparisons its knowledge rests on.
    std::uint64_t results() const { return results_; }
    // Whether it stays with the rules' choice for good, whatever it knows.
    bool gave_up() const { return gave_up_; }
    // How many calls others have made from whose knowledge it went on: their looks, changes and times are counted, too.
    std::uint64_t calls_before() const { return calls_before_; }

    struct Span {
        int candidate;
        std::uint64_t last_call;  // of this span: calls are numbered from 1
        bool is_measured;         // each call's begin and end shall be noted
    };
    // Requires: must_agree() is false.
    Span span(std::uint64_t call);
    // Whether the ranks must agree on their boards before this call, and decide() then.
    bool must_agree(std::uint64_t call) const { return phase_ != Phase::rest && call >= step_end(); }

    void note(std::uint64_t call, std::int64_t begin_ns, std::int64_t end_ns);
    // Of this rank, while must_agree(); to be replaced by the largest of each number on any rank, but the last one by how long it takes to agree.
    std::span<std::int64_t> board() {
        if (gives_up_) mark() = kGivesUp;
        return std::span(notes_->board).first(numbers() + 2);
    }
    // Has all ranks stay with the rules' choice for good from the next time that they agree.
    void ask_to_give_up() { gives_up_ = true; }
    // Requires: must_agree(call); the board is agreed.
    void decide(std::uint64_t call);

    int incumbent() const { return incumbent_; }
    // Of the last look at it. A survey, which has a sample or two, is none. 0: there was no look at it.
    std::int64_t time_ns(int candidate) const {
        return facts_[candidate].seen == Seen::in_survey ? 0 : facts_[candidate].time_ns;
    }
    // The quartiles of the samples of that look: a quarter of them lie below, a quarter above.
    struct Spread {
        std::int64_t low_ns = 0, high_ns = 0;
    };
    Spread spread(int candidate) const {
        return facts_[candidate].seen == Seen::in_survey ? Spread{} : facts_[candidate].spread;
    }
    std::uint64_t looks() const { return looks_; }
    std::uint64_t changes() const { return changes_; }
    std::int64_t spent_ns() const { return static_cast<std::int64_t>(spent_ns_); }

  private:
    // survey: the probes of all challengers, one behind the other
    enum class Phase : std::uint8_t { rest, survey, probe, comparison };
    // The first call of a part is not measured: what it finds in caches is another candidate's. In streams it is, as the other
    // ranks' share of it may be waiting for rank 0 to make all calls of the part.
    struct Part {
        int candidate;
        int samples;
        int unmeasured = 1;
    };
    struct Parts {
        Part parts[kCandidatesMost];  // a survey's; others have three at most
        std::size_t count;
        std::span<const Part> all() const { return {parts, count}; }
    };
    // The samples of one phase, of the incumbent or of the challengers: what is believed to be the calls' time, what it was taken
    // from, and the part of that which was left out.
    struct Samples {
        static constexpr std::size_t kMost = 64;
        std::int64_t times[kMost], wholes[kMost], outsides[kMost];
        std::size_t count = 0;

        void add(std::int64_t time_ns, std::int64_t whole_ns) {
            times[count] = std::max(time_ns, kLeastTimeNs);
            wholes[count] = std::max(whole_ns, kLeastTimeNs);
            outsides[count++] = whole_ns - time_ns;
        }
        void take_wholes() { std::copy_n(wholes, count, times); }
        std::span<std::int64_t> all() { return {times, count}; }
        std::span<const std::int64_t> all_outsides() const { return {outsides, count}; }
    };
    // Times are rounded up to this, as ratios are taken of them.
    static constexpr std::int64_t kLeastTimeNs = 1;
    static constexpr std::size_t kNumbersMost = 320;
    // What is noted in a look. It has memory as long as the look goes on, which is seldom: a program may have thousands of cells.
    struct Notes {
        // The numbers of each sample in turn, then a mark, and what it takes to agree.
        std::int64_t board[kNumbersMost + 2] = {};
        Samples incumbents, challengers;  // of the phase
        // Of each call of a stretch under way: how long the rank was outside before it, and inside.
        std::int64_t before_ns[kCallsMost] = {}, inside_ns[kCallsMost] = {};
    };

    // What is known of a candidate's time.
    enum class Seen : std::uint8_t { never, in_survey, in_look };
    struct Facts {
        std::int64_t time_ns = 0;
        Spread spread;
        // That it is faster than the incumbent: sums of z. In the first older ones count less.
        double evidence = 0, slow_evidence = 0;
        double comparisons = 0;  // in slow_evidence
        double credit_ns = 0;  // that it was faster in looks than the incumbent, and has not been set off yet
        std::uint64_t next_look;
        // That of a communicator which has gone on from others' knowledge, where it looks for itself sooner than that.
        std::uint64_t own_look = UINT64_MAX;
        std::uint64_t look_due() const { return std::min(next_look, own_look); }
        unsigned hopeless_probes = 0;  // since it was compared last
        unsigned voids = 0;            // looks at it in a row that were void
        double look_ns = 0;            // what the last look took
        // Not 0: the last look was broken off by a communicator's end before this call, or by that of an earlier one that lived longer.
        std::uint64_t broken_off_at = 0;
        bool by_wholes = false;  // its time has what lay between the calls in it
        Seen seen = Seen::never;
        bool is_close = false;  // to the incumbent, by the last comparison
    };
    // Whether the comparison of this look has four times the samples.
    bool is_thorough() const;

    // A phase of streams has a step for each sample, any other one step. The first step of a look at streams has none: the
    // agreement behind it lets all ranks catch up.
    int steps() const { return clocks_ != Clocks::streams ? 1 : phase_ == Phase::probe ? 4 : 9; }
    Parts parts() const;  // of the step
    int calls_per_sample() const;
    std::int64_t calls_of(const Part& part) const {
        return part.unmeasured + part.samples * calls_per_sample();
    }
    // On the board for each sample: an entry and an exit; or a time, and how long a rank was outside before each call; or these.
    enum Stretch { kWhole, kTime, kLeastLeftOut, kStretchNumbers };
    int numbers_per_sample() const {
        return clocks_ == Clocks::common  ? 2
               : clocks_ == Clocks::apart ? 1 + calls_per_sample()
                                          : kStretchNumbers;
    }
    std::size_t numbers() const { return sample_count() * static_cast<std::size_t>(numbers_per_sample()); }
    std::uint64_t step_calls() const;
    std::uint64_t step_end() const { return step_begin_ + step_calls(); }
    void note_in_sample(int sample, int place, std::int64_t begin_ns, std::int64_t end_ns);
    std::int64_t sample(int number) const;
    std::int64_t whole_sample(int number) const;
    void sum_up(std::int64_t* numbers) const;
    std::size_t sample_count() const;
    // Board's last number but one: the largest of these on any rank.
    enum Mark : std::int64_t { kGood, kVoid, kGivesUp };
    std::int64_t& mark() { return notes_->board[numbers()]; }

    double unseen_share() const;
    void put_off_first_look(Facts& facts, std::uint64_t call);
    double share_of(const Facts& challenger) const;
    void begin(Phase phase, int first_step, std::uint64_t call);
    void begin_step(int step, std::uint64_t call);
    void collect();
    void count_challenged();
    bool shall_survey() const;
    void conclude(std::int64_t agreement_ns, std::uint64_t call);
    void see_challenger(int candidate, std::span<std::int64_t> times, double calls, bool by_wholes);
    bool seems_hopeless(const Facts& challenger) const;
    void conclude_survey(std::uint64_t call);
    void judge(double z, double ratio, bool by_wholes);
    bool waits_are_hidden();
    bool take_wholes_if_waits_are_hidden();
    double whole_ratio() const;
    void conclude_probe(bool by_wholes, std::uint64_t call);
    bool is_looked_at(int candidate) const;
    void end_void_look(std::uint64_t call);
    std::uint64_t rest_for(double share, unsigned voids) const;
    void rest();
    void rest_until_next_look(std::uint64_t call);
    static constexpr std::size_t kKnownOfAll = 8, kKnownOfEach = 15;
    template <class Self, class Visit>
    static void visit_known(Self& self, Visit visit);
    void end_look(std::uint64_t call);
    void go_on(std::uint64_t call);
    void change_to(int candidate, double comparisons);

    const int candidates_;
    const Clocks clocks_;
    const Start start_;
    Phase phase_ = Phase::rest;
    int incumbent_ = 0, challenger_ = 0;
    int step_ = 0;                  // of the phase
    std::uint64_t step_begin_ = 1;  // its first call
    std::uint64_t rest_end_;        // the first call behind the rest
    Facts facts_[kCandidatesMost];
    double challenged_calls_ = 0;  // calls of the phase that went to challengers
    double look_ns_ = 0;           // spent in the look under way
    double spent_ns_ = 0;          // in all looks
    std::uint64_t looks_ = 0, changes_ = 0, results_ = 0;
    std::uint64_t calls_before_ = 0;
    std::uint64_t known_at_ = 0;    // the last call that was made when its knowledge was asked for last
    std::unique_ptr<Notes> notes_;  // null while at rest
    std::size_t noted_ = 0;         // calls of the step's samples
    bool agreements_are_dear_ = false, gives_up_ = false, gave_up_ = false;
    std::int64_t stretch_begin_ns_ = 0, last_end_ns_ = 0;
    // How long it was outside before the last call that was noted, and before the one that precedes the stretch.
    std::int64_t last_before_ns_ = 0, before_first_ns_ = 0;
};

}  // namespace coco::choose
