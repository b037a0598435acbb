// SPDX-License-Identifier: BSD-3-Clause
//
// What learning brings and costs: the calls of a collective as a program that learns makes them, against each fixed
// choice, in one process and on one communicator, in turns. For every size that is done --repeats times on a communicator of its own, where
// nothing was learned before; each figure is the median.
//
//   mpiexec -n 4 coco run build/mpich/bench/learning alltoall bcast
//
// First a ranking times each choice alone: the rules' (without learning), the MPI library's own function, and those that
// --choices names. Then the learned calls, the library's and the best of the ranking take turns, a batch each, until each has made
// --calls calls (fewer where they would take longer than --figure-us). A row tells, of the slowest rank:
//
//   choice   the best fixed choice, and best, library: what it and the library's function take a call
//   first    how much more the learned calls have taken than the better of rules and library, all together, in calls of that
//   total    the ratio of the same times: above 1 learning has lost
//   at 2000  the best choice's speed over the learned calls', from call 2,000 to twice as far: above 1 they are faster
//   later    the library's time over that of the learned calls in the second half: medians of batches
//
// A batch that takes twice as long as the slowest choice of the ranking was disturbed from outside, and counts as so long.
//
// Options: those of turns.h; --calls N (20,000), --least-calls N (100: so many are made however long they take), --repeats N (5), --growth N (2:
// each size is twice the one before), --choices NAME,... and --worst FILE: writes a policy whose rules choose the worst of
// each ranking, with the others as `also`, and measures nothing more. With COCO_LEARN=off the learned calls are the
// rules', so that the table shows what the method itself is good for.
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "calls.h"
#include "turns.h"

namespace {

using bench::rank;

// The learned calls go by no choice at all.
constexpr const char* kLearned = "";
constexpr const char* kRules = "rules";
constexpr const char* kLibrary = "mpi";
constexpr std::uint64_t kSoon = 2000;

struct Options {
    std::vector<std::string> collectives, choices{kRules, kLibrary};
    std::uint64_t calls = 20'000, least_calls = 100;
    int repeats = 5;
    long growth = 2;  // each size is so many times the one before
    std::string worst_file;
    bench::Timing timing;
};

// One way to make the calls, and how long its batches have taken.
struct Side {
    std::string choice;
    std::vector<double> batches_us = {};  // of a call, the slowest rank's
};

double sum_of(const Side& side) {
    double sum = 0;
    for (double us : side.batches_us) sum += us;
    return sum;
}

// The median from one part of the batches to another, in shares of all.
double median_between(const Side& side, double from, double to) {
    const auto count = static_cast<double>(side.batches_us.size());
    const auto first = side.batches_us.begin() + static_cast<long>(count * from);
    auto last = side.batches_us.begin() + static_cast<long>(count * to);
    if (last <= first) last = std::min(first + 1, side.batches_us.end());
    return bench::median({first, last});
}

class Runner {
  public:
    Runner(const std::string& collective, const Options& options, bench::Blocks& blocks, long bytes)
        : collective_(collective),
          options_(options),
          comm_(ready_copy_of_world(blocks)),
          pair_(bench::calls_of(collective, blocks, bytes, comm_)),
          buffers_{{blocks.send, side_bytes(bytes)}, {blocks.recv, side_bytes(bytes)}} {}
    ~Runner() { MPI_Comm_free(&comm_); }
    Runner(const Runner&) = delete;
    Runner& operator=(const Runner&) = delete;

    // Microseconds a call. What follows a change of the choice, and what it leaves in caches, is not counted.
    double time(const std::string& choice, int batch) {
        choose(choice);
        const bench::Call& call = choice == kLibrary ? pair_.library : pair_.ours;
        call();
        return bench::time_batch(call, batch, options_.timing, buffers_);
    }

    // The choices from the fastest to the slowest, without those that cannot run.
    std::vector<std::pair<double, std::string>> ranking() {
        std::vector<Side> sides;
        for (const std::string& choice : options_.choices)
            if (choose(choice)) sides.push_back({choice});
        constexpr int kRounds = 7;
        for (int round = 0; round <= kRounds; ++round)
            for (Side& side : sides) {
                const double once_us = time(side.choice, 1);
                const double us = time(side.choice, std::clamp(static_cast<int>(1000 / once_us), 1, 500));
                if (round != 0) side.batches_us.push_back(us);  // the first one warms up
            }
        std::vector<std::pair<double, std::string>> all;
        for (const Side& side : sides) all.emplace_back(bench::median(side.batches_us), side.choice);
        std::ranges::sort(all);
        choose(kLearned);
        return all;
    }

    // The sides make the same calls in turns; the order turns round. most_us: no call takes so long by itself.
    void take_turns(std::vector<Side>& sides, int batch, std::uint64_t calls, double most_us) {
        for (std::uint64_t done = 0; done < calls; done += static_cast<std::uint64_t>(batch)) {
            for (Side& side : sides)
                side.batches_us.push_back(std::min(time(side.choice, batch - 1), most_us));
            std::ranges::reverse(sides);
        }
        choose(kLearned);
    }

  private:
    static std::size_t side_bytes(long block_bytes) {
        return static_cast<std::size_t>(block_bytes) * static_cast<std::size_t>(bench::ranks());
    }

    using Choose = int(const void* comm, const char* collective, const char* choice);

    // Returns: whether that is possible on this communicator.
    bool choose(const std::string& choice) {
        static const auto function = reinterpret_cast<Choose*>(dlsym(RTLD_DEFAULT, "coco_choose"));
        if (function == nullptr) bench::give_up("learning: run me with libcoco");
        return function(&comm_, collective_.c_str(), choice == kLearned ? nullptr : choice.c_str()) == 0;
    }

    // Only a communicator that has been called on can be chosen for.
    MPI_Comm ready_copy_of_world(bench::Blocks& blocks) {
        if (auto forget = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "coco_forget"))) forget();
        MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
        const bench::Call first = bench::calls_of("allgather", blocks, 1, comm_).ours;
        for (int call = 0; call < 1000 && !choose(kLearned); ++call) first();
        return comm_;
    }

    const std::string collective_;
    const Options& options_;
    MPI_Comm comm_;
    const bench::Pair pair_;
    const bench::Buffers buffers_;
};

const Side& side_of(const std::vector<Side>& sides, const std::string& choice) {
    return *std::ranges::find(sides, choice, &Side::choice);
}

// What one repetition has shown.
struct Shown {
    double best_us, library_us, first, total, at_2000, later;
};

Shown shown_by(const std::vector<Side>& sides, const std::string& best, std::uint64_t calls) {
    const Side &learned = side_of(sides, kLearned), &library = side_of(sides, kLibrary),
               &rules = side_of(sides, kRules), &fixed = side_of(sides, best);
    const double least = std::min(sum_of(rules), sum_of(library));
    const double more = (sum_of(learned) - least) / least;
    const double from = std::min(0.5, static_cast<double>(kSoon) / static_cast<double>(calls));
    return {.best_us = median_between(fixed, 0, 1),
            .library_us = median_between(library, 0, 1),
            .first = more * static_cast<double>(calls),
            .total = 1 + more,
            .at_2000 = median_between(fixed, from, 2 * from) / median_between(learned, from, 2 * from),
            .later = median_between(library, 0.5, 1) / median_between(learned, 0.5, 1)};
}

Shown measure_once(const std::string& name, const Options& o, bench::Blocks& b, long bytes,
                   std::string& best) {
    Runner runner(name, o, b, bytes);
    const auto ranking = runner.ranking();
    if (best.empty()) best = ranking.front().second;
    std::vector<Side> sides{{kLearned}, {kRules}, {kLibrary}};
    if (best != kRules && best != kLibrary) sides.push_back({best});
    double round_us = ranking.front().first;  // of one call of each side
    for (const auto& [us, choice] : ranking)
        if (std::ranges::find(sides, choice, &Side::choice) != sides.end()) round_us += us;
    const auto calls = std::clamp(static_cast<std::uint64_t>(o.timing.figure_us / round_us), o.least_calls,
                                  std::max(o.least_calls, o.calls));
    const int batch = std::clamp(static_cast<int>(o.timing.batch_us / ranking.front().first), 5, 200);
    runner.take_turns(sides, batch, calls, 2 * ranking.back().first);
    return shown_by(sides, best, calls);
}

void measure(const std::string& name, const Options& o, bench::Blocks& b, long bytes) {
    std::string best;
    std::vector<Shown> all;
    for (int repeat = 0; repeat < o.repeats; ++repeat) all.push_back(measure_once(name, o, b, bytes, best));
    auto middle = [&](double Shown::*member) {
        std::vector<double> values;
        for (const Shown& shown : all) values.push_back(shown.*member);
        return bench::median(values);
    };
    if (rank() != 0) return;
    std::printf("%9ld %-12s %10.3f %10.3f %9.0f %7.3f %8.2f %7.2f\n", bytes, best.c_str(),
                middle(&Shown::best_us), middle(&Shown::library_us), middle(&Shown::first),
                middle(&Shown::total), middle(&Shown::at_2000), middle(&Shown::later));
    std::fflush(stdout);
}

// A rule for blocks of (from, to] bytes whose choice is the slowest of the ranking.
std::string worst_rule(const std::string& collective,
                       const std::vector<std::pair<double, std::string>>& ranking, long from, long to) {
    std::ostringstream text;
    text << "[[rule]]\ncollective = \"" << collective << "\"\n";
    if (to != 0) text << "block = \"" << from + 1 << '-' << to << "\"\n";
    std::vector<std::string> names;
    for (const auto& [us, choice] : ranking)
        if (choice != kRules) names.push_back(choice);
    text << "algorithm = \"" << names.back() << "\"\nalso = [";
    // As many as can be tried besides: the library's function is a candidate of every cell.
    const std::size_t also = names.back() == kLibrary ? 3 : 2;
    names.pop_back();
    std::erase(names, kLibrary);
    if (names.size() > also) names.resize(also);
    for (std::size_t i = 0; i < names.size(); ++i) text << (i != 0 ? ", \"" : "\"") << names[i] << '"';
    text << "]\n\n";
    return text.str();
}

bool has_one_rule(const std::string& collective) {
    return collective == "alltoallv" || collective == "alltoallw";
}

std::string worst_policy(const std::string& name, const Options& o, bench::Blocks& b) {
    std::string text;
    for (long bytes = o.timing.from_bytes; bytes <= o.timing.to_bytes; bytes *= o.growth) {
        if (has_one_rule(name) && bytes != o.timing.from_bytes) break;
        const auto ranking = Runner(name, o, b, bytes).ranking();
        text += worst_rule(name, ranking, bytes / o.growth, has_one_rule(name) ? 0 : bytes);
    }
    return text;
}

std::vector<std::string> words_of(const std::string& list) {
    std::istringstream in(list);
    std::vector<std::string> words;
    for (std::string word; std::getline(in, word, ',');) words.push_back(word);
    return words;
}

Options parse(int argc, char** argv) {
    Options o;
    bench::Timing defaults;
    defaults.batch_us = 1000;
    defaults.figure_us = 2e6;
    o.timing = bench::read_timing(argc, argv, defaults, [&](const std::string& word, const auto& value) {
        if (word == "--calls")
            o.calls = static_cast<std::uint64_t>(bench::read_number(word, value(), 100, 1e9));
        else if (word == "--growth")
            o.growth = static_cast<long>(bench::read_number(word, value(), 2, 1 << 20));
        else if (word == "--least-calls")
            o.least_calls = static_cast<std::uint64_t>(bench::read_number(word, value(), 100, 1e9));
        else if (word == "--repeats")
            o.repeats = static_cast<int>(bench::read_number(word, value(), 1, 1000));
        else if (word == "--choices")
            std::ranges::copy(words_of(value()), std::back_inserter(o.choices));
        else if (word == "--worst")
            o.worst_file = value();
        else if (word[0] != '-')
            o.collectives.push_back(word);
        else
            return false;
        return true;
    });
    if (o.collectives.empty()) o.collectives = {"alltoall", "alltoallv", "allgather", "allgatherv", "bcast"};
    return o;
}

char* memory_of(std::size_t bytes) {
    void* at = nullptr;
    if (posix_memalign(&at, 4096, bytes) != 0) std::abort();
    std::memset(at, 1, bytes);
    return static_cast<char*>(at);
}

void run(const std::string& name, const Options& o, bench::Blocks& b) {
    if (rank() == 0)
        std::printf("%s, %d ranks\n%9s %-12s %10s %10s %9s %7s %8s %7s\n", name.c_str(), bench::ranks(),
                    "bytes", "choice", "best us", "library us", "first", "total", "at 2000", "later");
    for (long bytes = o.timing.from_bytes; bytes <= o.timing.to_bytes; bytes *= o.growth)
        measure(name, o, b, bytes);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const Options o = parse(argc, argv);
    const std::size_t n = static_cast<std::size_t>(bench::ranks()),
                      bytes = static_cast<std::size_t>(o.timing.to_bytes) * n;
    bench::Blocks b{memory_of(bytes), memory_of(bytes), std::vector<int>(n), std::vector<int>(n),
                    std::vector<MPI_Datatype>(n, MPI_BYTE)};
    std::string policy;
    for (const std::string& name : o.collectives) {
        if (o.worst_file.empty())
            run(name, o, b);
        else
            policy += worst_policy(name, o, b);
    }
    if (!o.worst_file.empty() && rank() == 0) {
        std::FILE* file = std::fopen(o.worst_file.c_str(), "w");
        if (file == nullptr) bench::give_up(o.worst_file + ": cannot be written");
        std::fputs(policy.c_str(), file);
        std::fclose(file);
    }
    MPI_Finalize();
}
