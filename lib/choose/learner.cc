// SPDX-License-Identifier: BSD-3-Clause
#include "choose/learner.h"

#include <algorithm>
#include <cmath>

namespace coco::choose {
namespace {

// Evidence is a sum of z. What counts fast fades, some ten comparisons long, and is bounded below, so that costs that change
// are noticed after a few looks. Its threshold is three standard deviations of such a sum where both candidates are alike.
constexpr double kFading = 0.9, kMostAgainst = 4.0, kEnoughEvidence = 6.9;
// What counts slowly finds differences of a hundredth in noise that is greater by far. A mistake costs no more than that, so
// the better of the two is followed early.
constexpr double kSlowLeast = 3, kSlowDeviations = 1.5;
// A candidate's first comparisons come faster than the later ones if they speak for it.
constexpr double kFirstComparisons = 5;
// They come less fast where little seems to be gained.
constexpr double kSmallGainShare = 0.03;
// One that several probes have found hopeless since it was compared last has so much less of the time.
constexpr unsigned kHopelessSeldom = 4;
// Two that are less apart take many looks to tell apart.
constexpr double kClose = 0.1;
// For the first comparison of two candidates alone.
constexpr double kClearEvidence = 2.3, kClearGain = 0.97;
// What it takes to note a call, and to choose anew: at each part of a look, and behind it, where it is judged, too.
constexpr std::int64_t kNoteNs = 60, kChooseNs = 1000;
// Calls that take so many times as long are cheap to note.
constexpr std::int64_t kCheapToNote = 8;
constexpr std::uint64_t kRestLeast = 64;
// An agreement is dear if it takes longer than so many calls, for each call of a sample; of a stream's sample, which holds many
// calls for another reason, than so many calls alone.
constexpr std::int64_t kLongAgreement = 16;
// A pause is a time outside that is longer than so many times the sum of a rank's usual time outside, below which a quarter of
// these times are, and its usual time inside, the median.
constexpr std::int64_t kPauseTimes = 8;
// No exchange between nodes takes less.
constexpr std::int64_t kLeastApartNs = 100;
// Ranks that share processors take turns of about a millisecond.
constexpr std::int64_t kStreamSampleNs = 1'000'000;

std::int64_t median_of(std::span<std::int64_t> times) {
    std::ranges::sort(times);
    const std::size_t middle = times.size() / 2;
    return times.size() % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
}

// Returns: the time that `below` of the times lie below. Requires: there are kCallsMost times at most, and more than `below`.
std::int64_t quantile_of(std::span<const std::int64_t> times, std::size_t below) {
    std::int64_t sorted[Learner::kCallsMost] = {};
    const auto end = std::ranges::copy(times, sorted).out;
    std::nth_element(sorted, sorted + below, end);
    return sorted[below];
}

// Requires: the times are sorted.
Learner::Spread spread_of(std::span<const std::int64_t> times) {
    return {times[times.size() / 4], times[times.size() - 1 - times.size() / 4]};
}

// By Mann and Whitney: in standard deviations, how far `some` lie below `others` by their ranks alone.
double z_of(std::span<const std::int64_t> some, std::span<const std::int64_t> others) {
    double below = 0;
    for (const std::int64_t one : some)
        for (const std::int64_t other : others) below += one < other ? 1.0 : one == other ? 0.5 : 0.0;
    const auto n = static_cast<double>(some.size()), m = static_cast<double>(others.size());
    return (below - n * m / 2) / std::sqrt(n * m * (n + m + 1) / 12);
}

// The cell's first call that a look may begin with.
std::uint64_t first_look(Learner::Clocks clocks, Learner::Start start) {
    if (start == Learner::Start::restless) return 3;
    const bool runs_ahead = clocks == Learner::Clocks::stretches || clocks == Learner::Clocks::streams;
    const std::uint64_t first = runs_ahead ? Learner::kFirstLookAtStretches : Learner::kFirstLook;
    return start == Learner::Start::known ? Learner::kFirstLooksLaterIfKnown * first : first;
}

}  // namespace

Learner::Learner(int candidates, Clocks clocks, Start start)
    : candidates_(candidates), clocks_(clocks), start_(start), rest_end_(first_look(clocks, start)) {
    for (Facts& facts : facts_) facts.next_look = rest_end_;
    if (candidates_ < 2) rest_end_ = UINT64_MAX;
}

// Where calls take little more than to note them, two that are close are compared so only when the first comparisons are over, which may
// take much of the time.
bool Learner::is_thorough() const {
    if (start_ == Start::restless) return agreements_are_dear_;
    const Facts& challenger = facts_[challenger_];
    const bool is_cheap =
        facts_[incumbent_].time_ns >= kCheapToNote * kNoteNs || challenger.comparisons >= kFirstComparisons;
    return agreements_are_dear_ || (challenger.is_close && is_cheap);
}

// As many calls of a stream as take longer than ranks run ahead, and more in a thorough comparison that is not the first.
int Learner::calls_per_sample() const {
    switch (clocks_) {
        case Clocks::common:
            return 1;
        case Clocks::apart:
            return 4;
        case Clocks::stretches:
            return 8;
        case Clocks::streams:
            break;
    }
    if (start_ == Start::restless) return 4;
    if (phase_ == Phase::probe) return 16;
    // One of them may have been disturbed in the probe.
    const std::int64_t time_ns = std::min(facts_[incumbent_].time_ns, facts_[challenger_].time_ns);
    const int calls = static_cast<int>(
        std::clamp<std::int64_t>(kStreamSampleNs / std::max<std::int64_t>(time_ns, 1), 8, 64));
    static_assert(4 * 64 <= kCallsMost);
    return is_thorough() && facts_[challenger_].comparisons > 0 ? 4 * calls : calls;
}

// A comparison has four times the samples where agreeing takes longer than it would otherwise, and where the two are close. In a stream it goes
// incumbent, challenger, challenger, incumbent, twice; a probe is the first three.
Learner::Parts Learner::parts() const {
    if (clocks_ == Clocks::streams) {
        if (step_ == 0) return {{{incumbent_, 0}}, 1};
        return {{{step_ / 2 % 2 == 1 ? challenger_ : incumbent_, 1, 0}}, 1};
    }
    const int probe = clocks_ == Clocks::common ? 2 : 1;
    if (phase_ == Phase::probe) return {{{incumbent_, 2 * probe}, {challenger_, probe}}, 2};
    if (phase_ == Phase::survey) {
        Parts all{{{incumbent_, 2 * probe}}, 1};
        for (int c = 0; c < candidates_; ++c)
            if (c != incumbent_) all.parts[all.count++] = {c, probe};
        return all;
    }
    const int quarter = 4 * probe * (is_thorough() ? 4 : 1);
    return {{{incumbent_, quarter}, {challenger_, 2 * quarter}, {incumbent_, quarter}}, 3};
}

std::size_t Learner::sample_count() const {
    int count = 0;
    for (const Parts now = parts(); const Part& part : now.all()) count += part.samples;
    return static_cast<std::size_t>(count);
}

std::uint64_t Learner::step_calls() const {
    std::uint64_t calls = 0;
    for (const Parts now = parts(); const Part& part : now.all())
        calls += static_cast<std::uint64_t>(calls_of(part));
    return calls;
}

Learner::Span Learner::span(std::uint64_t call) {
    if (phase_ == Phase::rest && call >= rest_end_) go_on(call);
    if (phase_ == Phase::rest) return {incumbent_, rest_end_ - 1, false};
    std::uint64_t end = step_begin_;
    for (const Parts now = parts(); const Part& part : now.all()) {
        end += static_cast<std::uint64_t>(calls_of(part));
        if (call < end) return {part.candidate, end - 1, true};
    }
    return {incumbent_, call, false};
}

void Learner::note(std::uint64_t call, std::int64_t begin_ns, std::int64_t end_ns) {
    if (phase_ == Phase::rest || call < step_begin_) return;
    auto at = static_cast<std::int64_t>(call - step_begin_);
    int sample = 0;
    for (const Parts now = parts(); const Part& part : now.all()) {
        if (at < calls_of(part)) {
            at -= part.unmeasured;
            if (at >= 0)
                note_in_sample(sample + static_cast<int>(at / calls_per_sample()),
                               static_cast<int>(at % calls_per_sample()), begin_ns, end_ns);
            break;
        }
        at -= calls_of(part);
        sample += part.samples;
    }
    last_before_ns_ = call == step_begin_ ? 0 : begin_ns - last_end_ns_;
    last_end_ns_ = end_ns;
    const bool is_whole = noted_ == sample_count() * static_cast<std::size_t>(calls_per_sample());
    if (is_whole && !gives_up_) mark() = kGood;
}

// place: of the call in its sample.
void Learner::note_in_sample(int sample, int place, std::int64_t begin_ns, std::int64_t end_ns) {
    ++noted_;
    std::int64_t* const numbers = notes_->board + sample * numbers_per_sample();
    if (clocks_ == Clocks::common) {
        numbers[0] = begin_ns;
        numbers[1] = end_ns;
    } else if (clocks_ == Clocks::apart) {
        if (place == 0) stretch_begin_ns_ = last_end_ns_;
        numbers[1 + place] = begin_ns - last_end_ns_;
        numbers[0] = end_ns - stretch_begin_ns_;
    } else {
        // A stream's sample begins behind an agreement, which is nothing that the program does.
        const bool is_behind_agreement = place == 0 && clocks_ == Clocks::streams;
        if (place == 0) before_first_ns_ = is_behind_agreement ? 0 : last_before_ns_;
        notes_->before_ns[place] = is_behind_agreement ? 0 : begin_ns - last_end_ns_;
        notes_->inside_ns[place] = end_ns - begin_ns;
        if (place + 1 == calls_per_sample()) sum_up(numbers);
    }
}

// Of all calls of a stretch and what lies before each: the whole time; the time as if there had been no pauses; and how many calls are
// left out for them. These are the call behind a pause and the next one: in the one, or before the other, a rank may have waited for
// one whose pause was longer. Where that would leave less than a quarter, pauses are what is usual, and there are none.
void Learner::sum_up(std::int64_t* numbers) const {
    const auto calls = static_cast<std::size_t>(calls_per_sample());
    const std::span before(notes_->before_ns, calls), inside(notes_->inside_ns, calls);
    const std::int64_t limit_ns =
        kPauseTimes * (quantile_of(before, calls / 4) + quantile_of(inside, calls / 2));
    std::int64_t whole_ns = 0, time_ns = 0, left_out = 0;
    bool was_behind = before_first_ns_ > limit_ns;
    for (std::size_t i = 0; i < calls; ++i) {
        const std::int64_t one_ns = before[i] + inside[i];
        const bool is_behind = before[i] > limit_ns;
        whole_ns += one_ns;
        if (is_behind || was_behind)
            ++left_out;
        else
            time_ns += one_ns;
        was_behind = is_behind;
    }
    const auto count = static_cast<std::int64_t>(calls);
    if (4 * left_out > 3 * count) left_out = 0, time_ns = whole_ns;
    numbers[kWhole] = whole_ns;
    numbers[kTime] = time_ns * count / (count - left_out);
    numbers[kLeastLeftOut] = -left_out;
}

std::int64_t Learner::sample(int number) const {
    const std::int64_t* const numbers = notes_->board + number * numbers_per_sample();
    if (clocks_ == Clocks::common) return numbers[1] - numbers[0];
    if (clocks_ != Clocks::apart)
        return numbers[numbers[kLeastLeftOut] == 0 ? kWhole : kTime] / calls_per_sample();
    std::int64_t time_ns = numbers[0];
    for (int i = 1; i < numbers_per_sample(); ++i) time_ns -= numbers[i];
    return time_ns / calls_per_sample();
}

std::int64_t Learner::whole_sample(int number) const {
    const std::int64_t* const numbers = notes_->board + number * numbers_per_sample();
    return clocks_ == Clocks::apart ? numbers[0] / calls_per_sample() : sample(number);
}

void Learner::begin(Phase phase, int first_step, std::uint64_t call) {
    phase_ = phase;
    notes_->incumbents.count = notes_->challengers.count = 0;
    challenged_calls_ = 0;
    begin_step(first_step, call);
}

void Learner::begin_step(int step, std::uint64_t call) {
    step_ = step;
    step_begin_ = call;
    noted_ = 0;
    std::ranges::fill(notes_->board, 0);
    mark() = kVoid;
}

// Over several nodes a call takes so long that agreements are cheap beside it, and streams have one behind each sample. Where an earlier job has
// learned, challengers may wait. A survey that was void is not repeated, unless a communicator's end was the reason: where some rank misses the
// calls of one challenger, looks at the others must not suffer.
bool Learner::shall_survey() const {
    const bool is_on_one_node = clocks_ == Clocks::common || clocks_ == Clocks::stretches;
    return is_on_one_node && candidates_ > 2 && start_ != Start::known &&
           std::ranges::all_of(facts_, [](const Facts& facts) {
               return facts.seen == Seen::never && (facts.voids == 0 || facts.broken_off_at != 0);
           });
}

// Looks at the challenger whose turn it is.
void Learner::go_on(std::uint64_t call) {
    challenger_ = -1;
    for (int c = 0; c < candidates_; ++c)
        if (c != incumbent_ && (challenger_ < 0 || facts_[c].look_due() < facts_[challenger_].look_due()))
            challenger_ = c;
    look_ns_ = 0;
    notes_ = std::make_unique<Notes>();
    if (shall_survey()) return begin(Phase::survey, 0, call);
    const Facts& facts = facts_[challenger_];
    // Behind a void look a few calls show whether it is hopeful still.
    const bool is_hopeful = facts.seen != Seen::never && facts.voids == 0 &&
                            facts.by_wholes == facts_[incumbent_].by_wholes && !seems_hopeless(facts);
    begin(is_hopeful ? Phase::comparison : Phase::probe, 0, call);
}

// Takes the samples of the step from the agreed board.
void Learner::collect() {
    int number = 0;
    for (const Parts now = parts(); const Part& part : now.all())
        for (int i = 0; i < part.samples; ++i, ++number)
            (part.candidate != incumbent_ ? notes_->challengers : notes_->incumbents)
                .add(sample(number), whole_sample(number));
}

void Learner::count_challenged() {
    for (const Parts now = parts(); const Part& part : now.all())
        if (part.candidate != incumbent_) challenged_calls_ += static_cast<double>(calls_of(part));
}

// Whether the look under way is at this candidate. A survey is a look at all challengers.
bool Learner::is_looked_at(int candidate) const {
    return phase_ == Phase::survey ? candidate != incumbent_ : candidate == challenger_;
}

// Charges what the challenger's calls took longer than the incumbent's would have, as far as anything is known.
void Learner::end_void_look(std::uint64_t call) {
    ++looks_;
    for (int c = 0; c < candidates_; ++c) {
        if (!is_looked_at(c)) continue;
        Facts& facts = facts_[c];
        ++facts.voids;
        facts.broken_off_at = 0;
        // end_look finds a better one for the challenger whose turn it is.
        facts.next_look = call + rest_for(unseen_share(), facts.voids);
    }
    const Facts &challenger = facts_[challenger_], &incumbent = facts_[incumbent_];
    // Times of two kinds do not compare.
    const std::int64_t least_ns = challenger.by_wholes == incumbent.by_wholes ? 0 : challenger.time_ns / 2;
    if (challenger.seen != Seen::never)
        look_ns_ += challenged_calls_ *
                    static_cast<double>(std::max(challenger.time_ns - incumbent.time_ns, least_ns));
    end_look(call);
}

// Where a candidate does not make ranks wait for one another they may wait elsewhere, outside of its calls, and what they were outside
// may add up to all that a stretch took, or more. So the one that times favour must not have been outside for longer.
bool Learner::waits_are_hidden() {
    if (clocks_ != Clocks::apart) return false;
    const std::int64_t incumbent_ns = median_of(notes_->incumbents.all()),
                       challenger_ns = median_of(notes_->challengers.all());
    if (std::min(incumbent_ns, challenger_ns) < kLeastApartNs) return true;
    if (phase_ == Phase::probe) return false;
    const double shorter = z_of(notes_->incumbents.all_outsides(), notes_->challengers.all_outsides());
    return (challenger_ns < incumbent_ns ? shorter : -shorter) > kClearEvidence;
}

// Returns: whether candidates are compared by all that passed in their stretches, of which calls are a part.
bool Learner::take_wholes_if_waits_are_hidden() {
    if (!waits_are_hidden()) return false;
    notes_->incumbents.take_wholes();
    notes_->challengers.take_wholes();
    return true;
}

// How many times as long as the incumbent's the challenger's stretches took.
double Learner::whole_ratio() const {
    std::int64_t incumbents[Samples::kMost], challengers[Samples::kMost];
    const auto median = [](const Samples& samples, std::int64_t* copy) {
        std::copy_n(samples.wholes, samples.count, copy);
        return static_cast<double>(median_of({copy, samples.count}));
    };
    return median(notes_->challengers, challengers) / median(notes_->incumbents, incumbents);
}

void Learner::decide(std::uint64_t call) {
    const std::int64_t agreement_ns = board().back();
    look_ns_ += static_cast<double>(agreement_ns) + static_cast<double>(step_calls()) * kNoteNs +
                static_cast<double>(parts().count) * kChooseNs;
    if (mark() == kGivesUp) {
        ++looks_;
        spent_ns_ += look_ns_;
        rest();
        incumbent_ = 0;
        gave_up_ = true;
        return;
    }
    count_challenged();
    if (mark() == kVoid) return end_void_look(call);
    collect();
    if (step_ + 1 < steps()) return begin_step(step_ + 1, call);
    conclude(agreement_ns, call);
}

// Notes what a phase has shown of a challenger, in so many calls. times: of its samples; they are sorted.
void Learner::see_challenger(int candidate, std::span<std::int64_t> times, double calls, bool by_wholes) {
    const std::int64_t incumbent_ns = facts_[incumbent_].time_ns;
    Facts& facts = facts_[candidate];
    const std::int64_t middle_ns = median_of(times);
    // Of a probe the best: the other sample may have met a cold start.
    facts.time_ns = phase_ == Phase::comparison ? middle_ns : times.front();
    facts.spread = spread_of(times);
    facts.seen = phase_ == Phase::survey ? Seen::in_survey : Seen::in_look;
    facts.by_wholes = by_wholes;
    // Less than nothing, too, if the challenger is the better one: so that noise counts as nothing in the sum of all looks.
    facts.credit_ns -= static_cast<double>(facts.time_ns - incumbent_ns) * calls;
    look_ns_ += std::max(-facts.credit_ns, 0.0);
    facts.credit_ns = std::max(facts.credit_ns, 0.0);
}

bool Learner::seems_hopeless(const Facts& challenger) const {
    return static_cast<double>(challenger.time_ns) >
           kHopeless * static_cast<double>(facts_[incumbent_].time_ns);
}

// Behind the last step of a phase.
void Learner::conclude(std::int64_t agreement_ns, std::uint64_t call) {
    ++looks_, ++results_;
    facts_[challenger_].broken_off_at = 0;
    const bool by_wholes = take_wholes_if_waits_are_hidden();
    const std::span<std::int64_t> incumbents = notes_->incumbents.all(),
                                  challengers = notes_->challengers.all();
    Facts& incumbent = facts_[incumbent_];
    incumbent.time_ns = median_of(incumbents);
    incumbent.spread = spread_of(incumbents);
    incumbent.seen = Seen::in_look;
    incumbent.by_wholes = by_wholes;
    const int calls = clocks_ == Clocks::streams ? 1 : calls_per_sample();
    agreements_are_dear_ = agreement_ns > kLongAgreement * calls * incumbent.time_ns;
    if (phase_ == Phase::survey) return conclude_survey(call);
    see_challenger(challenger_, challengers, challenged_calls_, by_wholes);
    if (phase_ == Phase::probe) return conclude_probe(by_wholes, call);
    Facts& challenger = facts_[challenger_];
    challenger.voids = 0;
    judge(z_of(challengers, incumbents),
          static_cast<double>(challenger.time_ns) / static_cast<double>(incumbent.time_ns), by_wholes);
    end_look(call);
}

// Goes on with the challenger that was the fastest.
void Learner::conclude_survey(std::uint64_t call) {
    const auto each = notes_->challengers.count / static_cast<std::size_t>(candidates_ - 1);
    const double calls = challenged_calls_ / (candidates_ - 1);
    std::span<std::int64_t> samples = notes_->challengers.all();
    for (int c = 0; c < candidates_; ++c) {
        if (c == incumbent_) continue;
        see_challenger(c, samples.first(each), calls, false);
        samples = samples.subspan(each);
        Facts& facts = facts_[c];
        if (seems_hopeless(facts)) ++facts.hopeless_probes;
        // Earlier surveys may have been broken off.
        facts.voids = 0;
        facts.broken_off_at = 0;
        facts.own_look = UINT64_MAX;
        if (facts.time_ns < facts_[challenger_].time_ns || facts_[challenger_].seen == Seen::never)
            challenger_ = c;
    }
    // For communicators that go on from here; the end of this look puts them off again.
    for (int c = 0; c < candidates_; ++c) {
        if (c == incumbent_) continue;
        facts_[c].look_ns = look_ns_;
        put_off_first_look(facts_[c], call);
    }
    if (seems_hopeless(facts_[challenger_])) return end_look(call);
    begin(Phase::comparison, 0, call);
}

void Learner::conclude_probe(bool by_wholes, std::uint64_t call) {
    Facts& challenger = facts_[challenger_];
    // One stretch of some calls may have a pause of the program in it, or less waiting than others.
    const bool is_hopeless =
        seems_hopeless(challenger) && !by_wholes && (clocks_ != Clocks::apart || whole_ratio() > kHopeless);
    // All ranks have just agreed, so a stream need not be stopped for it once more.
    if (!is_hopeless) return begin(Phase::comparison, clocks_ == Clocks::streams ? 1 : 0, call);
    challenger.voids = 0;
    ++challenger.hopeless_probes;
    end_look(call);
}

void Learner::judge(double z, double ratio, bool by_wholes) {
    Facts& challenger = facts_[challenger_];
    const bool is_first = challenger.comparisons == 0;
    challenger.hopeless_probes = 0;
    challenger.is_close = std::abs(ratio - 1) < kClose;
    challenger.evidence = std::max(kFading * challenger.evidence + z, -kMostAgainst);
    challenger.slow_evidence += z;
    challenger.comparisons += 1;
    if (challenger.evidence > kEnoughEvidence ||
        (is_first && !by_wholes && z > kClearEvidence && ratio < kClearGain))
        return change_to(challenger_, 0);
    if (challenger.comparisons >= kSlowLeast &&
        challenger.slow_evidence > kSlowDeviations * std::sqrt(challenger.comparisons))
        change_to(challenger_, challenger.comparisons);
}

// comparisons: as many still hold. What is known of the others was found by comparing them with the old incumbent.
void Learner::change_to(int candidate, double comparisons) {
    const double evidence = comparisons != 0 ? facts_[candidate].slow_evidence : 0;
    const bool are_close = facts_[candidate].is_close;
    for (Facts& facts : facts_) {
        facts.evidence = std::min(facts.evidence, 0.0);
        facts.slow_evidence = facts.comparisons = 0;
        facts.is_close = false;
    }
    facts_[incumbent_].is_close = are_close;
    facts_[incumbent_].evidence = -kMostAgainst;
    facts_[incumbent_].slow_evidence = -evidence;
    facts_[incumbent_].comparisons = std::max(comparisons, 1.0);
    challenger_ = incumbent_;
    incumbent_ = candidate;
    ++changes_;
}

// The share of the time that the first look may take at a challenger that nobody has looked at yet.
double Learner::unseen_share() const {
    return start_ == Start::known ? kSpentShare / (candidates_ - 1) : kFirstShare;
}

// The share of the time that looks at this challenger may take from now on. One that seems to be the better one is soon looked at
// again, the sooner the more there is to gain; and so is one that was not compared yet, unless two probes have found it hopeless: in
// one a rank may have been put aside.
double Learner::share_of(const Facts& challenger) const {
    if (challenger.comparisons == 0 && challenger.hopeless_probes <= 1) return kFirstShare;
    if (challenger.hopeless_probes > 1)
        return kSpentShare / (candidates_ - 1) / std::min(challenger.hopeless_probes - 1, kHopelessSeldom);
    if (challenger.slow_evidence <= 0 || challenger.comparisons >= kFirstComparisons)
        return kSpentShare / (candidates_ - 1);
    const auto incumbent_ns = static_cast<double>(facts_[incumbent_].time_ns);
    return static_cast<double>(challenger.time_ns) < kClearGain * incumbent_ns ? kFirstShare
                                                                               : kSmallGainShare;
}

// In calls from now on: as many as make a look a small share of their time. Where looks at the challenger were void, nobody knows how
// long its calls took: each in a row doubles the least rest.
std::uint64_t Learner::rest_for(double share, unsigned voids) const {
    constexpr double kNever = 1e15;
    constexpr unsigned kDoublings = 20;
    const std::int64_t time_ns = facts_[incumbent_].time_ns;
    const std::uint64_t doubled = (2 * kRestLeast) << std::clamp(voids, 1u, kDoublings);
    if (time_ns == 0) return doubled;  // nothing was seen
    const auto paced =
        static_cast<std::uint64_t>(std::min(look_ns_ / (share * static_cast<double>(time_ns)), kNever));
    return std::max(voids != 0 ? doubled : kRestLeast, paced);
}

// For good, unless somebody says until when.
void Learner::rest() {
    phase_ = Phase::rest;
    rest_end_ = UINT64_MAX;
    notes_.reset();
}

void Learner::end_look(std::uint64_t call) {
    look_ns_ += kChooseNs;
    spent_ns_ += look_ns_;
    facts_[challenger_].look_ns = look_ns_;
    facts_[challenger_].own_look = UINT64_MAX;
    if (start_ == Start::restless) {
        rest();
        incumbent_ = static_cast<int>((looks_ * 7 + call) % static_cast<std::uint64_t>(candidates_));
        rest_end_ = call + 1 + looks_ % 5;
        return;
    }
    for (int c = 0; c < candidates_; ++c) {
        if (c == incumbent_) continue;
        Facts& facts = facts_[c];
        if (c == challenger_)
            facts.next_look = call + rest_for(share_of(facts), facts.voids);
        else if (facts.seen != Seen::in_look)
            put_off_first_look(facts, call);
    }
    rest_until_next_look(call);
}

// As far as looks at others ask for before the first one at it alone.
void Learner::put_off_first_look(Facts& facts, std::uint64_t call) {
    if (facts.voids == 0) facts.next_look = std::max(facts.next_look, call + rest_for(unseen_share(), 0));
}

void Learner::rest_until_next_look(std::uint64_t call) {
    rest();
    for (int c = 0; c < candidates_; ++c)
        if (c != incumbent_) rest_end_ = std::min(rest_end_, std::max(facts_[c].look_due(), call + 1));
}

}  // namespace coco::choose
