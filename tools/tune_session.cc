// SPDX-License-Identifier: BSD-3-Clause
#include "tools/tune_session.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>

#include "base/env.h"
#include "os/clock.h"
#include "settings/learned_file.h"
#include "tools/tune_candidates.h"
#include "tools/tune_measure.h"
#include "tools/tune_write.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

using algorithms::Collective;

std::string today() {
    const std::time_t now = std::time(nullptr);
    char text[16];
    std::tm parts{};
    std::strftime(text, sizeof text, "%Y-%m-%d", gmtime_r(&now, &parts));
    return text;
}

// Memory that programs can have; plenty where the kernel does not tell.
std::uint64_t free_memory_bytes() {
    std::ifstream in("/proc/meminfo");
    std::string word;
    std::uint64_t kib = 0;
    while (in >> word)
        if (word == "MemAvailable:" && in >> kib) return kib * 1024;
    return UINT64_MAX;
}

// On stderr, which launchers take through a pipe: lines that stay, and few.
void tell(const std::string& line) { std::fprintf(stderr, "coco tune: %s\n", line.c_str()); }

// "alltoall 4K warm: eager 1.2 us, mpi 3.4": the fastest candidate, and the MPI library's own function.
std::string text_of(const TunedCell& cell) {
    std::string text = std::string(base::name_of(cell.collective)) + " " +
                       base::bytes_text(cell.block_bytes) + (cell.is_cold ? " cold: " : " warm: ");
    const auto best = std::ranges::min_element(cell.candidates, {}, &Figure::median_ns);
    if (best == cell.candidates.end()) return text + "nothing";
    text += policy::text_of(best->choice) + " " + us_text(best->median_ns) + " us";
    for (const Figure& figure : cell.candidates)
        if (figure.choice.algorithm == nullptr && best->choice.algorithm != nullptr)
            text += ", mpi " + us_text(figure.median_ns);
    return text;
}

// All cells are measured so often, some time apart.
constexpr std::size_t kPasses = 3;

// So many lines tell how far it is.
constexpr double kProgressLines = 40;

// What rank 0 decides about the next cell.
constexpr std::uint64_t kEnd = 0, kSkip = 1;  // else: its time in nanoseconds

class Session {
  public:
    Session(const Job& job, const TunePlan& plan, const policy::Policy& policy)
        : job_(job), plan_(plan), policy_(policy) {
        report_.mpi = mpi::version_of(mpi::lib());
        report_.machine = settings::machine();
        report_.date = today();
        report_.ranks = job.ranks();
    }
    int run();

  private:
    // What was measured so far with one sort of buffers.
    struct Cell {
        TunedCell measured;
        std::vector<Contender> contenders;
    };
    struct Size {
        std::uint64_t block_bytes;
        Cell warm, cold;
    };
    struct Subject {
        Collective collective;
        Callers callers;
        policy::Facts facts;
        std::vector<Size> sizes = {};
    };

    bool is_rank_0() const { return job_.rank() == 0; }
    bool on_all_ranks(bool mine) const { return mpi::on_all_ranks(job_.world(), mine); }
    bool can_write_all();
    bool prepare(Subject& subject);
    bool prepare_all();
    void choose_sizes(Subject& subject);
    Size make_size(const Subject& subject, std::uint64_t block_bytes) const;
    void play_pass();
    void tune_size(Subject& subject, std::size_t number);
    void tune_cell(const Calls& calls, Size& size, Cell& cell, std::uint64_t budget_ns);
    std::uint64_t time_for_cell(const std::vector<Contender>& contenders) const;
    std::size_t cells_left() const { return report_.planned_cells * kPasses - seen_cells_; }
    void write();
    std::uint64_t left_ns() const;
    void tell_progress(const TunedCell& cell);
    int conclude();

    int fail(const std::string& line) const { return is_rank_0() ? tell_error("tune: " + line) : 2; }

    const Job& job_;
    const TunePlan& plan_;
    const policy::Policy& policy_;
    TuneReport report_;
    Tuned tuned_;
    std::vector<Subject> subjects_;
    std::uint64_t begin_ns_ = 0, next_line_ns_ = 0;
    std::size_t seen_cells_ = 0;  // measured or skipped, in all passes
    bool ends_ = false;           // all ranks know it
    bool is_interrupted_ = false;
    std::string trouble_;  // in writing, on rank 0
};

bool Session::can_write_all() {
    const bool can = !is_rank_0() || (can_write(plan_.policy_path, trouble_) &&
                                      can_write(report_path(plan_.policy_path), trouble_));
    return on_all_ranks(can);
}

// Calls until libcoco has set the communicator up: some small calls, then large ones, which it does not wait
// with.
bool Session::prepare(Subject& subject) {
    constexpr int kCallsMost = 400, kSmallCalls = 200;
    constexpr std::uint64_t kLargeBytes = 64 << 10;
    const Collective collective = is_neighbor(subject.collective) ? subject.collective : Collective::alltoall;
    const Calls small(job_, collective, 8, subject.callers);
    const Calls large(job_, collective, kLargeBytes, subject.callers);
    if (!on_all_ranks(small.has_memory() && large.has_memory())) return false;
    for (int call = 0; call < kCallsMost; ++call) {
        (call < kSmallCalls ? small : large).make();
        const bool is_ready = job_.facts_of(subject.callers.comm, subject.facts) &&
                              (!is_neighbor(subject.collective) || subject.facts.degree.has_value()) &&
                              job_.choose(subject.callers.comm, subject.collective, "rules");
        if (on_all_ranks(is_ready)) return true;
    }
    return false;
}

// Leaves out sizes whose buffers would fill the memory, or for which MPI has no numbers.
void Session::choose_sizes(Subject& subject) {
    const auto mates = static_cast<std::uint64_t>(std::max(subject.facts.ranks_per_node, 1));
    const std::uint64_t most_bytes = free_memory_bytes() / 2 / mates;
    for (std::uint64_t bytes = plan_.from_bytes; bytes <= plan_.to_bytes; bytes *= 2) {
        const bool fits = Calls::fit_ints(bytes, subject.callers.blocks) &&
                          Calls::bytes_of(subject.collective, bytes, subject.callers.blocks) <= most_bytes;
        if (on_all_ranks(fits)) {
            subject.sizes.push_back(make_size(subject, bytes));
            continue;
        }
        if (is_rank_0())
            tell(std::string(base::name_of(subject.collective)) + " from " + base::bytes_text(bytes) +
                 " on is left out: its buffers would take half of the memory");
        return;
    }
}

Session::Size Session::make_size(const Subject& subject, std::uint64_t block_bytes) const {
    policy::Facts facts = subject.facts;
    facts.collective = subject.collective;
    facts.block_bytes = block_bytes;
    std::vector<Contender> contenders;
    for (const policy::Choice& choice : candidates_for(facts, policy_)) contenders.push_back({choice});
    const TunedCell cell{subject.collective, block_bytes, false, subject.facts.degree, {}};
    Size size{block_bytes, {cell, contenders}, {cell, contenders}};
    size.cold.measured.is_cold = true;
    return size;
}

bool Session::prepare_all() {
    Callers torus;
    for (Collective collective : plan_.collectives) {
        Subject subject{collective, {job_.world(), job_.ranks()}, {}};
        if (is_neighbor(collective)) {
            if (torus.blocks == 0) torus.comm = job_.make_torus(torus.blocks);
            subject.callers = torus;
        }
        if (!prepare(subject)) return false;
        choose_sizes(subject);
        report_.planned_cells += 2 * subject.sizes.size();
        subjects_.push_back(std::move(subject));
    }
    return true;
}

int Session::run() {
    if (!can_write_all()) return fail(trouble_);
    if (!prepare_all()) return fail("libcoco does not serve these ranks together; COCO_LOG=info says why");
    if (report_.planned_cells == 0) return fail("no size is left to measure");
    report_.facts = subjects_.front().facts;
    report_.facts.degree.reset();
    begin_ns_ = os::now_ns();
    for (std::size_t pass = 0; pass < kPasses && !ends_; ++pass) play_pass();
    return conclude();
}

void Session::play_pass() {
    for (Subject& subject : subjects_) {
        for (std::size_t i = 0; i < subject.sizes.size() && !ends_; ++i) tune_size(subject, i);
        job_.choose(subject.callers.comm, subject.collective, "");
    }
}

std::uint64_t Session::left_ns() const {
    const auto all_ns = static_cast<std::uint64_t>(plan_.minutes * 60e9);
    const std::uint64_t spent_ns = os::now_ns() - begin_ns_;
    return spent_ns < all_ns ? all_ns - spent_ns : 0;
}

// Warming up and a sample with the call before it, but not for the hopeless.
double first_round_of(const std::vector<Contender>& contenders) {
    constexpr double kCalls = 4, kHopeless = 4;
    const double best_ns = std::ranges::min_element(contenders, {}, &Contender::guess_ns)->guess_ns;
    double sum_ns = 0;
    for (const Contender& contender : contenders)
        if (contender.guess_ns <= kHopeless * best_ns) sum_ns += kCalls * contender.guess_ns;
    return sum_ns;
}

// The time that is left is shared among the cells that are left. One whose first round would not fit in is
// skipped.
std::uint64_t Session::time_for_cell(const std::vector<Contender>& contenders) const {
    std::uint64_t decision = kEnd;
    if (is_rank_0() && trouble_.empty()) {
        const std::uint64_t left = left_ns();
        const double first_round_ns = first_round_of(contenders);
        decision = std::max(left / cells_left(), kSkip + 1);
        if (first_round_ns > static_cast<double>(left)) decision = kSkip;
        if (left == 0) decision = kEnd;
    }
    job_.tell_from_rank_0(decision);
    return decision;
}

// Of those that were never called here. What a call takes goes with its bytes only where these are many.
void guess_by_smaller(std::vector<Contender>& contenders, const std::vector<Contender>& smaller,
                      std::uint64_t block_bytes) {
    constexpr std::uint64_t kManyBytes = 4096;
    for (Contender& contender : contenders) {
        const auto known = std::ranges::find(smaller, contender.choice, &Contender::choice);
        if (!contender.has_samples() && known != smaller.end())
            contender.guess_ns = known->guess_ns * (block_bytes > kManyBytes ? 2 : 1.2);
    }
}

void Session::tune_size(Subject& subject, std::size_t number) {
    Size& size = subject.sizes[number];
    if (number > 0)
        guess_by_smaller(size.warm.contenders, subject.sizes[number - 1].warm.contenders, size.block_bytes);
    const Calls calls(job_, subject.collective, size.block_bytes, subject.callers);
    const bool has_memory = on_all_ranks(calls.has_memory());
    for (Cell* cell : {&size.warm, &size.cold}) {
        const std::uint64_t budget_ns = has_memory ? time_for_cell(size.warm.contenders) : kSkip;
        ends_ = budget_ns == kEnd;
        if (ends_) return;
        if (budget_ns == kSkip) {
            seen_cells_ += cell == &size.warm ? 2 : 1;
            return;
        }
        tune_cell(calls, size, *cell, budget_ns);
        ++seen_cells_;
        if (ends_) return;
    }
}

// Those that are slow with warm buffers have their chance with cold ones, but for the hopeless.
void admit_to_cold(std::vector<Contender>& cold, const std::vector<Contender>& warm) {
    for (std::size_t i = 0; i < cold.size(); ++i) {
        cold[i].guess_ns = warm[i].guess_ns;
        cold[i].is_out = warm[i].is_out && warm[i].passes_ns.back().size() < 2;
    }
}

void Session::tune_cell(const Calls& calls, Size& size, Cell& cell, std::uint64_t budget_ns) {
    const bool is_cold = cell.measured.is_cold;
    begin_pass(cell.contenders);
    if (is_cold) admit_to_cold(cell.contenders, size.warm.contenders);
    const std::uint64_t warm_up_ns = is_cold ? 0 : warm_up(calls, cell.contenders, budget_ns);
    is_interrupted_ =
        measure(calls, cell.contenders, is_cold, budget_ns - std::min(warm_up_ns, budget_ns / 2));
    ends_ = is_interrupted_;
    cell.measured.candidates.clear();
    for (const Contender& contender : cell.contenders)
        if (contender.has_samples()) cell.measured.candidates.push_back(figure_of(contender));
    if (!is_rank_0()) return;
    write();
    tell_progress(cell.measured);
}

// Behind this cell, if it is time for a line.
void Session::tell_progress(const TunedCell& cell) {
    const std::uint64_t now_ns = os::now_ns();
    if (now_ns < next_line_ns_) return;
    next_line_ns_ = now_ns + static_cast<std::uint64_t>(plan_.minutes * 60e9 / kProgressLines);
    const unsigned long long left_s = (left_ns() + 500'000'000) / 1'000'000'000;
    char left[32];
    std::snprintf(left, sizeof left, "%llu:%02llu left", left_s / 60, left_s % 60);
    tell(filled({seen_cells_ + 1, report_.planned_cells * kPasses, left, text_of(cell)},
                "{} of {} cells, {}; {}"));
}

void Session::write() {
    report_.cells.clear();
    for (const Subject& subject : subjects_)
        for (const Size& size : subject.sizes)
            for (const Cell* cell : {&size.warm, &size.cold})
                if (!cell->measured.candidates.empty()) report_.cells.push_back(cell->measured);
    report_.is_complete = report_.cells.size() == report_.planned_cells;
    tuned_ = tune(report_, policy_);
    if (write_whole(plan_.policy_path, policy_text(report_, tuned_, policy_), trouble_))
        write_whole(report_path(plan_.policy_path), json_text(report_, tuned_), trouble_);
}

int Session::conclude() {
    std::uint64_t is_bad = trouble_.empty() && !report_.cells.empty() ? 0 : 1;
    job_.tell_from_rank_0(is_bad);
    if (is_bad != 0) return fail(trouble_.empty() ? "nothing was measured: the time is too short" : trouble_);
    if (!is_rank_0()) return 0;
    if (is_interrupted_ || !report_.is_complete)
        tell(filled({is_interrupted_ ? "interrupted with" : "the time was enough for", report_.cells.size(),
                     report_.planned_cells},
                    "{} {} of {} cells"));
    if (const std::size_t uncertain = tuned_.uncertain_sizes(); uncertain != 0)
        tell(filled({uncertain, report_.planned_cells / 2},
                    "uncertain sizes: {} of {}, where times scatter so much that the choice may lose over a "
                    "tenth; a quieter machine or more minutes will tell"));
    std::printf("%s\nThe rules are in %s, the figures in %s. To use them: COCO_POLICY=%s\n",
                table_text(report_, tuned_).c_str(), plan_.policy_path.c_str(),
                report_path(plan_.policy_path).c_str(), plan_.policy_path.c_str());
    std::fflush(stdout);
    return 0;
}

}  // namespace

int run_session(const Job& job, const TunePlan& plan, const policy::Policy& policy) {
    return Session(job, plan, policy).run();
}

}  // namespace coco::tools
