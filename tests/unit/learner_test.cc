// SPDX-License-Identifier: BSD-3-Clause
// The learner alone, in virtual time: programs of millions of calls whose candidates' costs are known, so that the time that
// learning takes can be held against the best fixed choice.
#include "choose/learner.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <random>
#include <set>
#include <string>
#include <vector>

using coco::choose::Learner;

namespace {

// Sanitizers look at memory and take nine times as long: once is enough for them, and shorter programs.
#if defined(__SANITIZE_ADDRESS__)
#define COCO_TEST_IS_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COCO_TEST_IS_SANITIZED
#endif
#endif
#ifdef COCO_TEST_IS_SANITIZED
constexpr unsigned kSeeds = 1;
constexpr std::uint64_t kManyCalls = 60'000;
#else
constexpr unsigned kSeeds = 2;
constexpr std::uint64_t kManyCalls = 1'000'000;
#endif

using Random = std::minstd_rand;

// How a program's calls go. Candidate 0 is the rules' choice, 1 the MPI library's own function.
struct Program {
    int candidates = 2;
    Learner::Clocks clocks = Learner::Clocks::common;
    Learner::Start start = Learner::Start::fresh;
    int ranks = 1;
    std::uint64_t calls = 1'000'000;
    double agreement_ns = 1000;
    // What it takes besides to choose anew, where calls go to another candidate or a look begins or ends, and to note a call.
    double choosing_ns = 0, noting_ns = 0;
    double noise = 0;  // times are this much of themselves apart
    // The time of a call without noise, from the last rank's entry to the last exit. It changes at multiples of `period` only.
    std::function<double(int candidate, std::uint64_t call)> cost_ns;
    std::uint64_t period = 1'000'000;
    // How much later than the first a rank enters, and how long it computes in between.
    std::function<double(int rank, std::uint64_t call)> late_ns = [](int, std::uint64_t) { return 0.0; };
    // With this candidate the rank that comes last finds all data there and leaves at once; the others wait for its data.
    int last_leaves_at_once = -1;
    // Where ranks share processors: rank 0 makes up to `burst_calls` calls, each of which takes so much of the call's time, then the
    // others make them in the rest of it, until rank 0 has its turn again. At an agreement all catch up.
    std::function<double(int candidate)> ahead_ns = nullptr;
    std::uint64_t burst_calls = 300;
    // Not 0: each communicator makes so many calls; then it is freed, and the next one goes on from what it knew, or from nothing.
    std::uint64_t calls_of_each = 0;
    bool knowledge_is_left = true;
};

// The mean is 1. Skewed, as times are, and with a rare disturbance that takes long.
double noise_of(const Program& program, Random& random) {
    if (program.noise == 0) return 1;
    const double skewed = std::exponential_distribution<double>(1)(random) - 1;
    const bool is_disturbed = program.noise > 0.05 && random() % 200 == 0;
    return 1 + program.noise * skewed + (is_disturbed ? 20 * program.noise - 0.1 : 0);
}

// The sum of costs of calls first to last of one candidate.
double cost_of(const Program& program, int candidate, std::uint64_t first, std::uint64_t last) {
    double sum = 0;
    while (first <= last) {
        const std::uint64_t end = std::min(last, (first / program.period + 1) * program.period - 1);
        sum += program.cost_ns(candidate, first) * static_cast<double>(end - first + 1);
        first = end + 1;
    }
    return sum;
}

struct Played {
    double spent_ns = 0;    // in all calls and agreements
    double best_ns = 0;     // of the better of candidates 0 and 1, had it been fixed
    double dearest_ns = 0;  // of one call of the slowest candidate
    int incumbent = 0;      // at the end
    int at_2000 = 0;        // the incumbent of call 2,000
    // The first call behind the first period that candidate 1 had, and the first one that it had as the incumbent.
    std::uint64_t tried_at = 0, followed_at = 0;
    std::uint64_t looks = 0, changes = 0;
};

class Player {
  public:
    Player(const Program& program, unsigned seed) : program_(program), random_(seed) { make_learners(); }

    Played play() {
        for (std::uint64_t call = 1; call <= program_.calls;) {
            if (program_.calls_of_each != 0 && call - before_ > program_.calls_of_each) end_communicator();
            call = go_on(call - before_) + before_;
        }
        played_.best_ns =
            std::min(cost_of(program_, 0, 1, program_.calls), cost_of(program_, 1, 1, program_.calls));
        for (int c = 0; c < program_.candidates; ++c)
            for (std::uint64_t at = 1; at <= program_.calls; at += program_.period)
                played_.dearest_ns = std::max(played_.dearest_ns, program_.cost_ns(c, at));
        played_.incumbent = learners_[0].incumbent();
        played_.looks = learners_[0].looks();
        played_.changes = learners_[0].changes();
        return played_;
    }

  private:
    void make_learners() {
        learners_.clear();
        for (int r = 0; r < program_.ranks; ++r)
            learners_.emplace_back(program_.candidates, program_.clocks, program_.start);
    }

    void end_communicator() {
        std::vector<std::int64_t> left;
        learners_[0].break_off(program_.calls_of_each + 1);
        learners_[0].write_knowledge(program_.calls_of_each + 1, left);
        make_learners();
        before_ += program_.calls_of_each;
        last_of_span_ = 0;
        if (!program_.knowledge_is_left) return;
        for (Learner& learner : learners_) learner.go_on_from(left);
        require(learners_[0].calls_before() == before_, before_);
    }

    // call: its number on the communicator. Returns: the next call.
    std::uint64_t go_on(std::uint64_t call) {
        if (learners_[0].must_agree(call)) agree(call);
        const Learner::Span span = learners_[0].span(call);
        for (Learner& other : learners_) {
            const Learner::Span same = other.span(call);
            require(same.candidate == span.candidate && same.last_call == span.last_call, call);
        }
        require(span.last_call >= call, call);
        if (call <= 2000) played_.at_2000 = learners_[0].incumbent();
        if (call > program_.period && span.candidate == 1) {
            if (played_.tried_at == 0) played_.tried_at = call;
            if (played_.followed_at == 0 && !span.is_measured) played_.followed_at = call;
        }
        if (span.last_call != last_of_span_) played_.spent_ns += program_.choosing_ns;
        last_of_span_ = span.last_call;
        if (!span.is_measured) {
            const std::uint64_t end = program_.calls_of_each != 0 ? program_.calls_of_each : program_.calls;
            const std::uint64_t last = std::min(span.last_call, std::min(end, program_.calls - before_));
            played_.spent_ns += cost_of(program_, span.candidate, before_ + call, before_ + last);
            return last + 1;
        }
        played_.spent_ns += program_.noting_ns;
        make_call(span.candidate, call);
        return call + 1;
    }

    // Catch's REQUIRE takes longer than what is tested here.
    static void require(bool holds, std::uint64_t call) {
        if (!holds) FAIL("learners disagree, or have no plan, at call " << call);
    }

    void agree(std::uint64_t call) {
        require(burst_left_ == 0, call);
        played_.spent_ns += program_.agreement_ns;
        std::vector<std::int64_t> most(learners_[0].board().begin(), learners_[0].board().end());
        for (Learner& learner : learners_)
            for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], learner.board()[i]);
        for (Learner& learner : learners_) {
            require(learner.must_agree(call), call);
            std::ranges::copy(most, learner.board().begin());
            learner.board().back() = static_cast<std::int64_t>(program_.agreement_ns);
            learner.decide(call);
        }
    }

    // See ahead_ns.
    void make_call_in_burst(int candidate, std::uint64_t call) {
        if (burst_left_ == 0) {
            double burst_ns = 0;
            while (burst_left_ < program_.burst_calls && !learners_[0].must_agree(call + burst_left_))
                burst_ns += program_.ahead_ns(learners_[0].span(call + burst_left_++).candidate);
            const double now_ns = exits_.back();
            std::ranges::fill(exits_, now_ns + burst_ns);
            exits_.front() = now_ns;
            behind_ns_ = burst_ns;
        }
        --burst_left_;
        const double ahead = program_.ahead_ns(candidate);
        const double rest = program_.cost_ns(candidate, call) * noise_of(program_, random_) - ahead;
        played_.spent_ns += ahead + rest;
        for (std::size_t r = 0; r < learners_.size(); ++r) {
            const double begin = exits_[r] - (r == 0 ? 0 : behind_ns_);
            exits_[r] += r == 0 ? ahead : rest;
            learners_[r].note(call, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(exits_[r]));
        }
        behind_ns_ = 0;
    }

    // Ranks leave together.
    void make_call(int candidate, std::uint64_t call) {
        if (program_.ahead_ns) return make_call_in_burst(candidate, call);
        const double cost = program_.cost_ns(candidate, call) * noise_of(program_, random_);
        played_.spent_ns += cost;
        std::vector<double> entries;
        for (int r = 0; r < program_.ranks; ++r)
            entries.push_back(exits_[static_cast<std::size_t>(r)] + program_.late_ns(r, call));
        const auto last = std::ranges::max_element(entries);
        std::ranges::fill(exits_, *last + cost);
        if (candidate == program_.last_leaves_at_once)
            exits_[static_cast<std::size_t>(last - entries.begin())] = *last + cost / 20;
        for (std::size_t r = 0; r < learners_.size(); ++r) {
            const double skew = program_.clocks == Learner::Clocks::common
                                    ? 0
                                    : 1e6 * static_cast<double>(r);  // their clocks differ
            learners_[r].note(call, static_cast<std::int64_t>(entries[r] + skew),
                              static_cast<std::int64_t>(exits_[r] + skew));
        }
    }

    const Program& program_;
    Random random_;
    std::vector<Learner> learners_;
    std::uint64_t before_ = 0;  // the calls of earlier communicators
    std::uint64_t last_of_span_ = 0;
    std::vector<double> exits_ = std::vector<double>(static_cast<std::size_t>(program_.ranks), 1e9);
    std::uint64_t burst_left_ = 0;
    double behind_ns_ = 0;  // how long rank 0 was ahead, before a burst's first call of the others
    Played played_;
};

Played play(const Program& program, unsigned seed = 1) { return Player(program, seed).play(); }

constexpr Learner::Clocks kAllClocks[] = {Learner::Clocks::common, Learner::Clocks::apart,
                                          Learner::Clocks::stretches, Learner::Clocks::streams};

// The calls before the first look in a cell that an earlier job has learned. Of other cells 0: their first look is in the constant.
std::uint64_t first_look_if_known(const Program& program) {
    if (program.start != Learner::Start::known) return 0;
    const bool runs_ahead =
        program.clocks == Learner::Clocks::stretches || program.clocks == Learner::Clocks::streams;
    return Learner::kFirstLooksLaterIfKnown *
           (runs_ahead ? Learner::kFirstLookAtStretches : Learner::kFirstLook);
}

// The bound of decision 25, which nearly all programs keep to.
constexpr double kConstantAgreements = 100;
// What the unluckiest program needs in the place of the constant.
double most_calls(const Program& program) {
    return program.noise > 0.2 ? 50'000 : program.noise > 0.1 ? 6'000 : 600;
}
double constant_calls(const Program& program) {
    if (program.noise > 0.2) return 12'000;
    return (program.clocks == Learner::Clocks::streams ? 600 : 400) +
           static_cast<double>(first_look_if_known(program));
}
double bound_ns(const Program& program, const Played& played) {
    return 1.01 * played.best_ns + constant_calls(program) * played.dearest_ns +
           kConstantAgreements * program.agreement_ns;
}

std::string text_of(const Program& program, const Played& played) {
    std::string costs;
    for (int c = 0; c < program.candidates; ++c) costs += std::to_string(program.cost_ns(c, 1)) + " ";
    return "costs " + costs + "noise " + std::to_string(program.noise) + " agreement " +
           std::to_string(program.agreement_ns) + ": " + std::to_string(played.spent_ns / played.best_ns) +
           " of the best, incumbent " + std::to_string(played.incumbent) + ", looks " +
           std::to_string(played.looks) + ", changes " + std::to_string(played.changes);
}

// Calls of the dearest candidate that a program has taken beyond a hundredth and its agreements.
double needed_calls(const Program& program, const Played& played) {
    return (played.spent_ns - bound_ns(program, played)) / played.dearest_ns + constant_calls(program);
}

// How many times as long as the rules' choice further candidates take.
using Others = std::vector<double>;

// Programs of two candidates, one of which takes so much of the other's time in calls of so much noise, and others, in all ways to read
// clocks.
template <class Play>
void play_two(double noise, std::initializer_list<std::uint64_t> lengths, unsigned seeds,
              const Others& others, Play each) {
    unsigned programs = 0;  // each has random numbers of its own
    for (double ratio :
         {0.1, 0.5, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 1.0, 1.01, 1.02, 1.03, 1.05, 1.1, 1.5, 3.0, 10.0})
        for (double agreement_ns : {10.0, 1000.0, 30'000.0})
            for (std::uint64_t calls : lengths)
                for (auto clocks : kAllClocks)
                    for (unsigned seed = 1; seed <= seeds; ++seed) {
                        std::vector<double> costs_ns{1000.0, 1000.0 * ratio};
                        for (double other : others) costs_ns.push_back(1000.0 * other);
                        const Program program{.candidates = static_cast<int>(costs_ns.size()),
                                              .clocks = clocks,
                                              .calls = calls,
                                              .agreement_ns = agreement_ns,
                                              .noise = noise,
                                              .cost_ns = [costs_ns](int c, std::uint64_t) {
                                                  return costs_ns[static_cast<std::size_t>(c)];
                                              }};
                        each(program, ratio, play(program, ++programs * 2'654'435'761u));
                    }
}

// Calls of 1 us, of `ratio` us and of 2.5 us, on communicators that are used for so many calls each.
Program on_short_communicators(Learner::Clocks clocks, double ratio, std::uint64_t calls_of_each) {
    auto cost_ns = [ratio](int c, std::uint64_t) {
        const double costs_ns[] = {1000.0, 1000.0 * ratio, 2500.0};
        return costs_ns[c];
    };
    return {.candidates = 3,
            .clocks = clocks,
            .ranks = 2,
            .noise = 0.05,
            .cost_ns = cost_ns,
            .calls_of_each = calls_of_each};
}

}  // namespace

TEST_CASE("learning stays within its bound of the better of two", "[learner][bound]") {
    for (double noise : {0.0, 0.05, 0.1, 0.2, 0.5}) {
        int plays = 0, long_ones = 0, beyond = 0;
        play_two(noise, {300, 3000, 30'000, 100'000, kManyCalls}, kSeeds, {},
                 [&](const Program& program, double ratio, const Played& played) {
                     INFO(text_of(program, played));
                     const double needed = needed_calls(program, played);
                     ++plays;
                     // In noise a few programs are unlucky.
                     if (noise > 0.1 && needed > constant_calls(program))
                         ++beyond;
                     else
                         CHECK(needed <= constant_calls(program));
                     CHECK(needed <= most_calls(program));
                     // Most need far less than the constant allows.
                     if (noise > 0.2 && needed > 2000) ++long_ones;
                     // The constant is more than so short a program takes; looking is far cheaper than that.
                     if (program.calls == 300)
                         CHECK(played.spent_ns <= 300 * 1010.0 + 27 * (1 + noise) * played.dearest_ns +
                                                      4 * program.agreement_ns);
                     if (noise > 0.2) return;
                     if (ratio < 0.85 && program.calls > 2000) CHECK(played.at_2000 == 1);
                     if (ratio > 1.2) CHECK(played.incumbent == 0);
                 });
        CHECK(beyond <= plays / 500);
        CHECK(long_ones <= plays / 50);
    }
}

void print_needed_calls(const Others& others) {
    std::printf("%zu candidates\n", 2 + others.size());
    for (double noise : {0.0, 0.05, 0.1, 0.2, 0.5}) {
        std::vector<double> needed;
        std::ptrdiff_t beyond = 0;
        play_two(noise, {300, 3000, 10'000, 30'000, 60'000, 100'000, 200'000, 500'000, 1'000'000, 2'000'000},
                 10, others, [&](const Program& program, double, const Played& played) {
                     needed.push_back(needed_calls(program, played));
                     beyond += needed.back() > constant_calls(program);
                 });
        std::ranges::sort(needed);
        std::printf("noise %.2f, %zu programs:", noise, needed.size());
        for (double part : {0.95, 0.98, 0.99, 0.999, 1.0})
            std::printf(" %.0f of %.1f %%,",
                        needed[static_cast<std::size_t>(static_cast<double>(needed.size() - 1) * part)],
                        100 * part);
        std::printf(" beyond the constant %td\n", beyond);
    }
}

TEST_CASE("learning stays within its bound with four candidates", "[learner][bound]") {
    for (double noise : {0.0, 0.1})
        play_two(noise, {300, 3000, 100'000}, 1, {1.3, 8.0},
                 [&](const Program& program, double ratio, const Played& played) {
                     INFO(text_of(program, played));
                     CHECK(needed_calls(program, played) <= constant_calls(program));
                     if (ratio < 0.85 && program.calls > 2000) CHECK(played.at_2000 == 1);
                     if (ratio > 1.2) CHECK(played.incumbent == 0);
                 });
}

// The figures of decision 25: unit_test '[bound table]'
TEST_CASE("what programs need of the constant, in calls", "[.][bound table]") { print_needed_calls({}); }
TEST_CASE("what programs of four candidates need of the constant, in calls", "[.][bound table]") {
    print_needed_calls({1.3, 8.0});
}

// As many calls of a communicator as have room for a whole look.
std::uint64_t calls_for_a_look(Learner::Clocks clocks) {
    return clocks == Learner::Clocks::streams ? 3000 : clocks == Learner::Clocks::stretches ? 700 : 300;
}

// Their first calls are no longer each one's own loss: the bound holds for all of them together, but for looks that a communicator's end
// has broken off, which rest for twice as long each time.
TEST_CASE("communicators that live for short go on from what earlier ones have learned", "[learner][bound]") {
    for (std::uint64_t calls_of_each : {20, 40, 50, 280, 300, 700, 3000})  // 40 and 280: amid the first look
        for (double ratio : {0.1, 0.5, 0.9, 1.0, 1.1, 3.0, 10.0})
            for (double agreement_ns : {10.0, 30'000.0})
                for (auto clocks : kAllClocks) {
                    Program program = on_short_communicators(clocks, ratio, calls_of_each);
                    program.calls = std::min<std::uint64_t>(kManyCalls, 100'000);
                    program.agreement_ns = agreement_ns;
                    const Played played = play(program);
                    INFO(text_of(program, played) << ", calls of each " << calls_of_each);
                    const bool is_looked_at = calls_of_each >= calls_for_a_look(clocks);
                    if (is_looked_at || ratio >= 1) CHECK(played.spent_ns <= bound_ns(program, played));
                    if (is_looked_at && (ratio < 0.85 || ratio > 1.2))
                        CHECK(played.incumbent == (ratio < 1 ? 1 : 0));
                    program.knowledge_is_left = false;
                    const Played forgetful = play(program);
                    if (calls_of_each == 3000) CHECK(played.spent_ns < forgetful.spent_ns);
                    if (calls_of_each == 20) CHECK(forgetful.looks == 0);
                }
}

// So long that a constant for each communicator would show.
TEST_CASE("many communicators take less than a hundredth more than the best choice", "[learner]") {
    for (std::uint64_t calls_of_each : {300, 1000, 5000})
        for (double ratio : {0.8, 1.0, 1.3, 4.0})
            for (auto clocks : kAllClocks) {
                if (calls_of_each < calls_for_a_look(clocks) && ratio < 1) continue;
                Program program = on_short_communicators(clocks, ratio, calls_of_each);
                program.calls = 2 * kManyCalls;
                program.agreement_ns = 10'000;
                program.choosing_ns = 200;
                program.noting_ns = 60;
                const Played played = play(program);
                INFO(text_of(program, played) << ", calls of each " << calls_of_each);
                CHECK(played.spent_ns <= 1.01 * played.best_ns + 2000 * played.dearest_ns);
            }
}

TEST_CASE("what an earlier job has compared is looked at later, and a mistake of it is found", "[learner]") {
    for (double ratio : {0.1, 0.5, 0.8, 1.0, 1.2, 3.0, 10.0})
        for (double noise : {0.0, 0.2})
            for (double agreement_ns : {10.0, 1000.0, 30'000.0})
                for (auto clocks : kAllClocks) {
                    Program program{
                        .clocks = clocks,
                        .start = Learner::Start::known,
                        .agreement_ns = agreement_ns,
                        .noise = noise,
                        .cost_ns = [&](int c, std::uint64_t) { return c == 0 ? 1000.0 : 1000.0 * ratio; }};
                    program.calls = first_look_if_known(program) - 1;
                    CHECK(play(program).looks == 0);
                    program.calls = 1'000'000;
                    const Played played = play(program);
                    INFO(text_of(program, played));
                    CHECK(played.spent_ns <= bound_ns(program, played));
                    CHECK(played.looks >= 1);
                    if (ratio != 1.0) CHECK(played.incumbent == (ratio < 1 ? 1 : 0));
                    program.calls = 4 * first_look_if_known(program);
                    if (ratio < 0.6) CHECK(play(program).incumbent == 1);
                }
}

// An 8 B alltoall of two ranks takes as long as this. What looks take beside calls and agreements is more than the calls themselves.
TEST_CASE("looks at calls of 100 ns take less than a hundredth", "[learner]") {
    for (double noise : {0.0, 0.2})
        for (auto clocks : {Learner::Clocks::common, Learner::Clocks::stretches})
            for (double ratio : {1.3, 2.5, 4.0})
                for (double agreement_ns : {1000.0, 4000.0}) {
                    Program program{
                        .candidates = 3,
                        .clocks = clocks,
                        .calls = 5'000'000,
                        .agreement_ns = agreement_ns,
                        .choosing_ns = 1000,
                        .noting_ns = 60,
                        .noise = noise,
                        .cost_ns = [&](int c, std::uint64_t) { return c == 0 ? 100.0 : 100.0 * ratio; }};
                    const Played played = play(program);
                    INFO(text_of(program, played));
                    CHECK(played.spent_ns <= 1.0075 * played.best_ns);
                    CHECK(played.looks >= 20);  // it goes on looking
                }
}

TEST_CASE("hopeless candidates cost a few calls", "[learner]") {
    for (double noise : {0.0, 0.2, 0.5})
        for (auto clocks : kAllClocks) {
            Program program{
                .candidates = 4, .clocks = clocks, .noise = noise, .cost_ns = [](int c, std::uint64_t) {
                    return c == 0 ? 1000.0 : c == 1 ? 1100.0 : c == 2 ? 10'000.0 : 100'000.0;
                }};
            const Played played = play(program);
            INFO(text_of(program, played));
            CHECK(played.spent_ns <= bound_ns(program, played));
            CHECK(played.incumbent == 0);
        }
}

TEST_CASE("a third candidate that is better than both is found", "[learner]") {
    for (double noise : {0.0, 0.2, 0.5})
        for (int best : {2, 3}) {
            Program program{.candidates = 4, .noise = noise, .cost_ns = [&](int c, std::uint64_t) {
                                return c == best ? 700.0 : c == 1 ? 3000.0 : 1000.0;
                            }};
            const Played played = play(program);
            INFO(text_of(program, played));
            CHECK(played.incumbent == best);
            CHECK(played.at_2000 == best);
            CHECK(played.spent_ns <= bound_ns(program, played));
        }
}

TEST_CASE("the fastest of several is followed soon where agreements take longer than hundreds of calls",
          "[learner]") {
    for (auto clocks : {Learner::Clocks::common, Learner::Clocks::stretches})
        for (int fastest : {1, 2, 3}) {
            Program program{.candidates = 4,
                            .clocks = clocks,
                            .calls = 20'000,
                            .agreement_ns = 100'000,
                            .noise = 0.1,
                            .cost_ns = [=](int c, std::uint64_t) {
                                return c == fastest ? 100.0 : c == 0 ? 2000.0 : 700.0;
                            }};
            const Played played = play(program);
            INFO(text_of(program, played));
            CHECK(played.at_2000 == fastest);
            CHECK(played.incumbent == fastest);
        }
}

TEST_CASE("one disturbed probe does not keep a better candidate out for long", "[learner]") {
    for (auto clocks : kAllClocks) {
        Program program{
            .candidates = 3, .clocks = clocks, .calls = 100'000, .cost_ns = [](int c, std::uint64_t call) {
                const double disturbed_ns = c == 1 && call < 400 ? 200'000 : 0;
                return disturbed_ns + (c == 0 ? 1000.0 : c == 1 ? 700.0 : 1500.0);
            }};
        program.period = 100;
        const Played played = play(program);
        INFO(text_of(program, played));
        CHECK(played.incumbent == 1);
    }
}

TEST_CASE("costs that change are followed", "[learner]") {
    for (double noise : {0.0, 0.2, 0.5})
        for (std::uint64_t period : {20'000u, 100'000u, 500'000u})
            for (double ratio : {0.5, 0.9, 1.1, 2.0, 5.0})
                for (unsigned seed : {1u, 2u, 3u, 4u}) {
                    Program program{.candidates = seed % 2 == 0 ? 4 : 2,
                                    .calls = 2'000'000,
                                    .noise = noise,
                                    .cost_ns =
                                        [&](int c, std::uint64_t call) {
                                            const bool turned = call / period % 2 == 1;
                                            return c == static_cast<int>(turned) ? 1000.0 : 1000.0 * ratio;
                                        },
                                    .period = period};
                    const Played played = play(program, seed);
                    INFO(text_of(program, played) << " period " << period);
                    CHECK(played.spent_ns <= bound_ns(program, played));
                    // A fixed choice pays for the slower half, one that follows does not.
                    if (program.candidates > 2) continue;  // the others' costs do not change
                    if (period >= 100'000 && (ratio == 0.5 || ratio == 2.0))
                        CHECK(played.spent_ns <= 0.9 * played.best_ns);
                    if (period >= 500'000 && ratio == 5.0) CHECK(played.spent_ns <= 0.6 * played.best_ns);
                }
}

// A look at candidate 2 finds that the incumbent has become slow. So candidate 1, which is 3 % faster now, is compared without a probe, and if
// that speaks for it once more at once.
TEST_CASE("one that was hopeless for long is found soon when it is not any more", "[learner]") {
    int soon = 0;
    for (unsigned seed = 1; seed <= 30; ++seed) {
        constexpr std::uint64_t kTurn = 1'000'000;
        Program program{.candidates = 3,
                        .calls = 2 * kTurn,
                        .agreement_ns = 100'000,
                        .noise = 0.05,
                        .cost_ns =
                            [](int c, std::uint64_t call) {
                                if (call < kTurn) return c == 0 ? 10'000.0 : c == 1 ? 90'000.0 : 22'000.0;
                                return c == 0 ? 93'000.0 : c == 1 ? 90'000.0 : 300'000.0;
                            },
                        .period = kTurn};
        const Played played = play(program, seed);
        INFO(text_of(program, played));
        CHECK(played.incumbent == 1);
        soon += played.followed_at - played.tried_at < 2000;
    }
    CHECK(soon >= 25);
}

TEST_CASE("ranks that arrive apart do not fool it", "[learner]") {
    for (auto clocks : {Learner::Clocks::common, Learner::Clocks::apart})
        for (double noise : {0.0, 0.2})
            for (double ratio : {0.7, 1.4}) {
                Random lateness(7);
                Program program{
                    .clocks = clocks,
                    .ranks = 5,
                    .calls = 200'000,
                    .noise = noise,
                    .cost_ns = [&](int c, std::uint64_t) { return c == 0 ? 1000.0 : 1000.0 * ratio; },
                    // Each is late in its turn, by up to a hundred calls' time.
                    .late_ns =
                        [&](int rank, std::uint64_t call) {
                            const bool is_late = call / 3 % 5 == static_cast<std::uint64_t>(rank);
                            return is_late ? static_cast<double>(lateness() % 100'000) : 0.0;
                        }};
                const Played played = play(program);
                INFO(text_of(program, played));
                CHECK(played.incumbent == (ratio < 1 ? 1 : 0));
                CHECK(played.at_2000 == (ratio < 1 ? 1 : 0));
            }
}

TEST_CASE("a rank that leaves before the others does not fool it", "[learner]") {
    for (auto clocks : {Learner::Clocks::common, Learner::Clocks::apart})
        for (double noise : {0.0, 0.2})
            for (double ratio : {0.7, 1.4}) {
                Program program{
                    .clocks = clocks,
                    .ranks = 4,
                    .calls = 200'000,
                    .noise = noise,
                    .cost_ns = [&](int c, std::uint64_t) { return c == 0 ? 1000.0 : 1000.0 * ratio; },
                    .last_leaves_at_once = ratio < 1 ? 0 : 1};
                const Played played = play(program);
                INFO(text_of(program, played));
                CHECK(played.incumbent == (ratio < 1 ? 1 : 0));
                CHECK(played.at_2000 == (ratio < 1 ? 1 : 0));
            }
}

TEST_CASE("what ranks do between calls of a stream does not fool it", "[learner]") {
    for (auto clocks : {Learner::Clocks::stretches, Learner::Clocks::streams})
        for (double noise : {0.0, 0.2})
            for (double ratio : {0.7, 1.4})
                for (std::uint64_t calls_between : {2u, 3u, 7u, 8u, 12u, 16u, 18u, 19u, 40u}) {
                    Program program{
                        .clocks = clocks,
                        .ranks = 4,
                        .calls = 200'000,
                        .agreement_ns = 100'000,
                        .noise = noise,
                        .cost_ns = [&](int c, std::uint64_t) { return c == 0 ? 80'000.0 : 80'000.0 * ratio; },
                        // All compute every few calls, some a little longer.
                        .late_ns =
                            [&](int rank, std::uint64_t call) {
                                return call % calls_between == 0 ? 3e6 + 1e4 * rank : 0;
                            }};
                    const Played played = play(program);
                    INFO(text_of(program, played) << ", a pause behind " << calls_between << " calls");
                    CHECK(played.incumbent == (ratio < 1 ? 1 : 0));
                    CHECK(played.at_2000 == (ratio < 1 ? 1 : 0));
                    // Else pauses are what is usual, and looks take their share of them, too.
                    if (calls_between > 2) CHECK(played.spent_ns <= bound_ns(program, played));
                }
}

namespace {

// A root and a reader that compute, the reader for longer, call, and wait for each other; behind every `calls_between` calls they
// compute for longer. Candidate 0's root waits in the call until the reader comes, candidate 1's does not.
struct Uneven {
    Learner::Clocks clocks;
    double cost_ns[2];
    std::uint64_t calls_between;
    double root_ns = 10'000, reader_ns = 15'000, root_pause_ns = 3e6, reader_pause_ns = 3.05e6;
};

// Returns: the incumbent after so many calls.
int play_uneven(const Uneven& program, std::uint64_t calls) {
    constexpr double kAgreement_ns = 1000, kSync_ns = 200;
    Learner root(2, program.clocks), reader(2, program.clocks);
    double now_ns = 1e9;
    for (std::uint64_t call = 1; call <= calls; ++call) {
        if (root.must_agree(call)) {
            std::vector<std::int64_t> most(root.board().begin(), root.board().end());
            for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], reader.board()[i]);
            for (Learner* learner : {&root, &reader}) {
                std::ranges::copy(most, learner->board().begin());
                learner->board().back() = static_cast<std::int64_t>(kAgreement_ns);
                learner->decide(call);
            }
            now_ns += kAgreement_ns;
        }
        const Learner::Span span = root.span(call);
        static_cast<void>(reader.span(call));
        const bool pauses = call % program.calls_between == 0;
        const double root_in = now_ns + program.root_ns + (pauses ? program.root_pause_ns : 0),
                     reader_in = now_ns + program.reader_ns + (pauses ? program.reader_pause_ns : 0),
                     cost = program.cost_ns[span.candidate];
        const double root_out =
                         span.candidate == 0 ? std::max(root_in, reader_in) + cost : root_in + cost / 3,
                     reader_out =
                         span.candidate == 0 ? root_out : std::max(root_out, reader_in) + cost * 2 / 3;
        if (span.is_measured) {
            root.note(call, static_cast<std::int64_t>(root_in), static_cast<std::int64_t>(root_out));
            reader.note(call, static_cast<std::int64_t>(reader_in), static_cast<std::int64_t>(reader_out));
        }
        now_ns = std::max(root_out, reader_out) + kSync_ns;
    }
    return root.incumbent();
}

}  // namespace

TEST_CASE("a root that waits inside for slower ranks does not fool it", "[learner]") {
    for (auto clocks : {Learner::Clocks::stretches, Learner::Clocks::streams})
        for (std::uint64_t calls_between : {2u, 3u, 7u, 8u, 12u, 16u, 18u, 40u, 1'000'000u})
            for (int best : {0, 1}) {
                Uneven program{clocks, {4000, 4000}, calls_between};
                program.cost_ns[best] = 1000;
                INFO("a pause behind " << calls_between << " calls");
                CHECK(play_uneven(program, 200'000) == best);
            }
}

TEST_CASE("ranks that share processors and run far ahead do not fool it", "[learner]") {
    // Samples of 64 calls, of some 20 and of 8.
    for (double scale : {1.0, 3.0, 15.0})
        for (double noise : {0.0, 0.2})
            for (int best : {0, 1}) {
                Program program{
                    .clocks = Learner::Clocks::streams,
                    .ranks = 4,
                    .calls = 500'000,
                    .agreement_ns = 100'000,
                    .noise = noise,
                    .cost_ns = [&](int c, std::uint64_t) { return scale * (c == best ? 14'000 : 15'000); },
                    // Of the better one rank 0 has most to do, of the other one the others have.
                    .ahead_ns = [&](int c) { return scale * (c == best ? 12'000 : 5'000); }};
                const Played played = play(program);
                INFO(text_of(program, played));
                CHECK(played.incumbent == best);
                CHECK(played.spent_ns <= bound_ns(program, played));
            }
}

namespace {

// Two ranks, for which candidate 1 is faster by far than all others.
struct Pair {
    explicit Pair(int candidates, Learner::Clocks clocks, Learner::Start start = Learner::Start::fresh)
        : some(candidates, clocks, start), other(candidates, clocks, start) {}

    // misses: whether the other rank does not note a call.
    template <class Misses>
    void make_call(Misses misses) {
        ++call;
        are_alike = are_alike && some.must_agree(call) == other.must_agree(call);
        if (some.must_agree(call)) {
            ++agreements;
            are_alike = are_alike && some.board().size() == other.board().size();
            for (std::size_t i = 0; i < some.board().size(); ++i)
                some.board()[i] = other.board()[i] = std::max(some.board()[i], other.board()[i]);
            some.board().back() = other.board().back() = 100;
            some.decide(call), other.decide(call);
        }
        const Learner::Span span = some.span(call), same = other.span(call);
        are_alike = are_alike && same.candidate == span.candidate && same.last_call == span.last_call &&
                    same.is_measured == span.is_measured;
        const std::int64_t begin_ns = now_ns;
        constexpr std::int64_t kTimesNs[] = {1000, 100, 1200, 3000};
        now_ns += kTimesNs[span.candidate];
        if (span.is_measured) some.note(call, begin_ns, now_ns);
        if (span.is_measured && !misses(call)) other.note(call, begin_ns, now_ns);
        if (changed_at == 0 && some.changes() != 0) changed_at = call;
    }

    Learner some, other;
    std::uint64_t call = 0, agreements = 0, changed_at = 0;
    bool are_alike = true;  // as to candidates and agreements
    std::int64_t now_ns = 1000;
};

}  // namespace

TEST_CASE("a rank that misses a sample makes the look void on all", "[learner]") {
    const int candidates = GENERATE(2, 4);
    for (auto clocks : kAllClocks) {
        Pair ranks(candidates, clocks);
        while (ranks.call < 2000) ranks.make_call([](std::uint64_t call) { return call % 7 == 0; });
        CHECK(ranks.are_alike);
        CHECK(ranks.some.looks() > 1);
        CHECK(ranks.some.incumbent() == 0);
        CHECK(ranks.other.incumbent() == 0);
        // Every call of a sample counts, and each agreement can be the one that finds out.
        Pair unmissed(candidates, clocks);
        while (unmissed.call < 10'000) unmissed.make_call([](std::uint64_t) { return false; });
        int later = 0;
        for (std::uint64_t missed = 1; missed < 900; missed += 11) {
            Pair once(candidates, clocks);
            while (once.call < 10'000) once.make_call([&](std::uint64_t call) { return call == missed; });
            CHECK(once.are_alike);
            CHECK(once.changed_at >= unmissed.changed_at);
            later += once.changed_at > unmissed.changed_at;
            CHECK(once.some.incumbent() == 1);
            CHECK(once.other.incumbent() == 1);
        }
        CHECK(later > 0);
    }
}

TEST_CASE("ranks that give up stay with the rules' choice, whenever one of them asks", "[learner]") {
    const int candidates = GENERATE(2, 4);
    for (auto clocks : kAllClocks)
        for (std::uint64_t asked = 1; asked < 900; asked += candidates == 2 ? 150 : 9) {
            Pair ranks(candidates, clocks);
            while (ranks.call < 200'000) {
                if (ranks.call == asked) ranks.other.ask_to_give_up();
                ranks.make_call([](std::uint64_t) { return false; });
            }
            CHECK(ranks.are_alike);
            CHECK(ranks.some.incumbent() == 0);
            CHECK(ranks.some.span(ranks.call + 1).last_call == UINT64_MAX - 1);
            CHECK(ranks.other.span(ranks.call + 1).last_call == UINT64_MAX - 1);
        }
}

TEST_CASE("restless ranks change their minds alike", "[learner]") {
    const int candidates = GENERATE(2, 4);
    for (auto clocks : kAllClocks) {
        Pair ranks(candidates, clocks, Learner::Start::restless);
        while (ranks.call < 3000) ranks.make_call([](std::uint64_t call) { return call % 11 == 0; });
        CHECK(ranks.are_alike);
        CHECK(ranks.some.looks() > 20);
        CHECK(ranks.agreements > 20);
    }
}

TEST_CASE("restless ranks change their minds as often where candidates are close", "[learner]") {
    for (auto clocks : kAllClocks) {
        auto looks_at = [&](double ratio) {
            const Program program{
                .clocks = clocks,
                .start = Learner::Start::restless,
                .calls = 3000,
                .cost_ns = [=](int c, std::uint64_t) { return c == 0 ? 1000.0 : 1000.0 * ratio; }};
            return play(program).looks;
        };
        CHECK(looks_at(1.0) >= looks_at(1.5));
    }
}

TEST_CASE("void looks come ever more seldom", "[learner]") {
    Learner learner(2, Learner::Clocks::common);
    std::uint64_t agreements = 0;
    for (std::uint64_t call = 1; call <= 1'000'000; ++call) {
        if (learner.must_agree(call)) {
            ++agreements;
            learner.board().back() = 1000;
            learner.decide(call);
        }
        const Learner::Span span = learner.span(call);
        if (!span.is_measured) call = std::max(call, std::min<std::uint64_t>(span.last_call, 1'000'000));
    }
    CHECK(agreements >= 5);
    CHECK(agreements <= 16);
    CHECK(learner.incumbent() == 0);
}

TEST_CASE("void looks keep to the bound as well", "[learner]") {
    constexpr std::uint64_t kCalls = 2'000'000;
    constexpr std::int64_t kBestNs = 1000, kAgreementNs = 1000;
    for (auto clocks : kAllClocks)
        for (std::int64_t ratio : {2, 3, 100}) {
            Learner learner(2, clocks);
            std::int64_t now_ns = 1000, spent_ns = 0;
            for (std::uint64_t call = 1; call <= kCalls; ++call) {
                if (learner.must_agree(call)) {
                    learner.board().back() = kAgreementNs;
                    spent_ns += kAgreementNs;
                    learner.decide(call);
                }
                const Learner::Span span = learner.span(call);
                const std::int64_t cost_ns = span.candidate == 0 ? kBestNs : kBestNs * ratio * 95 / 100;
                // What was noted once tells the costs; then sizes change all the time, and no look is whole.
                if (span.is_measured && learner.time_ns(1) == 0) learner.note(call, now_ns, now_ns + cost_ns);
                const std::uint64_t last = span.is_measured ? call : std::min(span.last_call, kCalls);
                spent_ns += cost_ns * static_cast<std::int64_t>(last - call + 1);
                now_ns += cost_ns;
                call = last;
            }
            INFO("ratio " << ratio << ", looks " << learner.looks());
            CHECK(learner.time_ns(1) > kBestNs);
            CHECK(learner.looks() > 3);
            const double best_ns = static_cast<double>(kBestNs * kCalls);
            CHECK(static_cast<double>(spent_ns) <=
                  1.01 * best_ns + 400.0 * static_cast<double>(kBestNs * ratio) + 100.0 * kAgreementNs);
        }
}

namespace {

// Two ranks, each outside for long in its turn. With one candidate they wait for each other in the call, with the other one they do
// not, but may do so behind it.
struct WaitingOfOne {
    int waiting;              // the candidate
    std::int64_t waiting_ns;  // from the later rank's entry
    std::int64_t other_ns;    // of a rank's own
    bool barrier_follows = false;
    double noise = 0;
};

int incumbent_at_end(const WaitingOfOne& program) {
    Learner ranks[2] = {Learner(2, Learner::Clocks::apart), Learner(2, Learner::Clocks::apart)};
    Random random(5);
    std::int64_t now_ns[2] = {1000, 1000};
    for (std::uint64_t call = 1; call <= 20'000; ++call) {
        if (ranks[0].must_agree(call)) {
            const auto one = ranks[0].board(), other = ranks[1].board();
            for (std::size_t i = 0; i < one.size(); ++i) one[i] = other[i] = std::max(one[i], other[i]);
            one.back() = other.back() = 100;
            for (Learner& rank : ranks) rank.decide(call);
        }
        const Learner::Span span = ranks[0].span(call);
        REQUIRE(ranks[1].span(call).candidate == span.candidate);
        const double factor = 1 + program.noise * (static_cast<double>(random() % 2001) / 1000 - 1);
        std::int64_t begin_ns[2];
        for (std::size_t r = 0; r < 2; ++r)
            begin_ns[r] = now_ns[r] + (call % 2 == r ? static_cast<std::int64_t>(10'000 * factor) : 0);
        for (std::size_t r = 0; r < 2; ++r) {
            now_ns[r] = span.candidate == program.waiting
                            ? std::max(begin_ns[0], begin_ns[1]) + program.waiting_ns
                            : begin_ns[r] + program.other_ns;
            if (span.is_measured) ranks[r].note(call, begin_ns[r], now_ns[r]);
        }
        if (program.barrier_follows) now_ns[0] = now_ns[1] = std::max(now_ns[0], now_ns[1]) + 1000;
    }
    return ranks[0].incumbent();
}

}  // namespace

TEST_CASE("a candidate with which ranks do not wait for one another is compared by whole stretches",
          "[learner]") {
    for (double noise : {0.0, 0.1}) {
        CHECK(incumbent_at_end({0, 20'000, 5000, false, noise}) == 1);
        CHECK(incumbent_at_end({1, 20'000, 5000, false, noise}) == 0);
        CHECK(incumbent_at_end({0, 20'000, 5200, false, noise}) == 1);
        // The one that does not wait takes longer all the same.
        CHECK(incumbent_at_end({0, 5000, 40'000, false, noise}) == 0);
        CHECK(incumbent_at_end({1, 5000, 40'000, false, noise}) == 1);
    }
    CHECK(incumbent_at_end({-1, 0, 5000}) == 0);
}

TEST_CASE("a candidate that leaves the waiting to a barrier behind it does not fool it", "[learner]") {
    for (double noise : {0.0, 0.1})
        for (std::int64_t other_ns : {8000, 12'000, 14'000, 40'000}) {
            INFO(other_ns << ", noise " << noise);
            CHECK(incumbent_at_end({0, 5000, other_ns, true, noise}) == 0);
            CHECK(incumbent_at_end({1, 5000, other_ns, true, noise}) == 1);
        }
}

TEST_CASE("what is looked at again behind a void look is probed first", "[learner]") {
    constexpr std::uint64_t kCalls = 4'000'000;
    constexpr double kBestNs = 1000, kAgreementNs = 20'000;
    Learner learner(2, Learner::Clocks::common);
    double spent_ns = 0;
    for (std::uint64_t call = 1; call <= kCalls; ++call) {
        if (learner.must_agree(call)) {
            learner.board().back() = static_cast<std::int64_t>(kAgreementNs);
            spent_ns += kAgreementNs;
            learner.decide(call);
        }
        const Learner::Span span = learner.span(call);
        // The challenger becomes much slower when it is known, and no look is whole any more.
        const bool is_known = learner.time_ns(1) != 0;
        const double cost_ns = span.candidate == 0 ? kBestNs : kBestNs * (is_known ? 100 : 1.5);
        if (span.is_measured && !is_known) learner.note(call, 0, static_cast<std::int64_t>(cost_ns));
        const std::uint64_t last = span.is_measured ? call : std::min(span.last_call, kCalls);
        spent_ns += cost_ns * static_cast<double>(last - call + 1);
        call = last;
    }
    CHECK(learner.looks() > 10);
    CHECK(spent_ns <= 1.01 * kBestNs * kCalls + 400 * 100 * kBestNs + 100 * kAgreementNs);
}

TEST_CASE("a void look at one candidate does not keep it waiting for long", "[learner]") {
    Learner learner(4, Learner::Clocks::common);
    bool has_missed = false;
    std::uint64_t call = 1;
    for (; learner.incumbent() != 3 && call < 100'000; ++call) {
        if (learner.must_agree(call)) {
            learner.board().back() = 30'000;
            learner.decide(call);
        }
        const Learner::Span span = learner.span(call);
        // The first look at it is void, behind a survey in which it was the fastest.
        const bool misses = span.is_measured && span.candidate == 3 && learner.looks() == 1;
        has_missed = has_missed || misses;
        if (span.is_measured && !misses) learner.note(call, 0, span.candidate == 3 ? 500 : 1000);
    }
    CHECK(has_missed);
    CHECK(call < 10'000);
}

namespace {

// What a rank sees of one communicator's calls, 500 ns each of candidate 2 and 1000 ns of others.
struct Watched {
    std::uint64_t calls = 2000;
    int missed = -1;  // this candidate's calls are not noted
    // Of the first look: the candidates, and how many calls of the incumbent lie between it and the next look.
    std::set<int> candidates = {};
    std::uint64_t rest = 0;

    void watch(Learner& learner) {
        std::uint64_t looks_ended = 0;
        bool was_looking = false;
        std::int64_t now_ns = 0;
        for (std::uint64_t call = 1; call <= calls; ++call) {
            if (learner.must_agree(call)) {
                learner.board().back() = 10'000;
                learner.decide(call);
            }
            const Learner::Span span = learner.span(call);
            const bool rests = !span.is_measured;
            if (rests && was_looking) ++looks_ended;
            was_looking = !rests;
            if (!rests && looks_ended == 0) candidates.insert(span.candidate);
            if (rests && looks_ended == 1) ++rest;
            const std::int64_t begin_ns = now_ns;
            now_ns += span.candidate == 2 ? 500 : 1000;
            if (!rests && span.candidate != missed) learner.note(call, begin_ns, now_ns);
        }
    }
};

// A later communicator's learner.
Learner successor(Learner& learner, std::uint64_t calls) {
    std::vector<std::int64_t> left;
    learner.break_off(calls + 1);
    learner.write_knowledge(calls + 1, left);
    Learner next(4, Learner::Clocks::common);
    next.go_on_from(left);
    return next;
}

}  // namespace

TEST_CASE("a survey that a communicator's end has broken off is made up for", "[learner]") {
    Learner first(4, Learner::Clocks::common);
    Watched{.calls = 40}.watch(first);
    CHECK(first.looks() == 0);
    Learner second = successor(first, 40);
    CHECK(second.looks() == 1);
    Watched seen;
    seen.watch(second);
    CHECK(seen.candidates == std::set{0, 1, 2, 3});
    CHECK(seen.rest >= 64);
    CHECK(second.incumbent() == 2);
}

TEST_CASE("a candidate whose calls are always missed does not keep others waiting on later communicators",
          "[learner]") {
    Learner first(4, Learner::Clocks::common);
    Watched{.calls = 100, .missed = 1}.watch(first);
    CHECK(first.looks() == 1);
    Learner second = successor(first, 100);
    Watched seen{.missed = 1};
    seen.watch(second);
    CHECK(seen.candidates.size() == 2);
    CHECK(second.incumbent() == 2);
}

TEST_CASE("what a survey alone has shown of a candidate does not pass for a look at it", "[learner]") {
    Learner learner(4, Learner::Clocks::stretches);
    std::uint64_t call = 1;
    for (std::int64_t now_ns = 0; learner.looks() < 2; ++call) {
        if (learner.must_agree(call)) learner.decide(call);
        const Learner::Span span = learner.span(call);
        const std::int64_t begin_ns = now_ns;
        now_ns += span.candidate == 2 ? 500 : 1000;
        if (span.is_measured) learner.note(call, begin_ns, now_ns);
    }
    CHECK(learner.incumbent() == 2);
    CHECK(learner.time_ns(2) == 500);
    CHECK(learner.time_ns(0) == 1000);
    CHECK(learner.time_ns(1) == 0);
    CHECK(learner.time_ns(3) == 0);
}

TEST_CASE("void looks at one candidate do not keep others waiting", "[learner]") {
    Learner learner(3, Learner::Clocks::common);
    for (std::uint64_t call = 1; call < 4000; ++call) {
        if (learner.must_agree(call)) {
            learner.board().back() = 100;
            learner.decide(call);
        }
        const Learner::Span span = learner.span(call);
        if (span.is_measured && span.candidate != 1) learner.note(call, 0, span.candidate == 0 ? 1000 : 500);
    }
    CHECK(learner.incumbent() == 2);
}

TEST_CASE("a comparison leaves the quartiles of its samples", "[learner]") {
    Learner learner(2, Learner::Clocks::common);
    for (std::uint64_t call = 1; learner.looks() < 2; ++call) {
        if (learner.must_agree(call)) learner.decide(call);
        const Learner::Span span = learner.span(call);
        // Each comparison has eight, sixteen and eight consecutive calls.
        const auto time_ns = static_cast<std::int64_t>(1000 + 100 * span.candidate + 10 * (call % 8));
        if (span.is_measured) learner.note(call, 0, time_ns);
    }
    CHECK(learner.time_ns(0) == 1035);
    CHECK(learner.spread(0).low_ns == 1020);
    CHECK(learner.spread(0).high_ns == 1050);
    CHECK(learner.spread(1).low_ns == 1120);
    CHECK(learner.spread(1).high_ns == 1150);
}

TEST_CASE("a cell with one candidate never looks", "[learner]") {
    Learner learner(1, Learner::Clocks::apart);
    const Learner::Span span = learner.span(1);
    CHECK(span.candidate == 0);
    CHECK(span.last_call == UINT64_MAX - 1);
    CHECK_FALSE(learner.must_agree(1'000'000));
}
