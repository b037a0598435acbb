// SPDX-License-Identifier: BSD-3-Clause
#include "turns.h"

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "os/cpu.h"

namespace bench {
namespace {

int ask_world(int (*question)(MPI_Comm, int*)) {
    int answer = 0;
    question(MPI_COMM_WORLD, &answer);
    return answer;
}

long read_bytes(const std::string& what, const std::string& text) {
    std::size_t unit = text.empty() ? std::string::npos : std::string("KMG").find(text.back());
    double scale = unit == std::string::npos ? 1 : std::pow(1024, unit + 1);
    std::string digits = scale > 1 ? text.substr(0, text.size() - 1) : text;
    return static_cast<long>(read_number(what, digits, 1, INT_MAX / scale) * scale);
}

void flush_cache(const Region& region) {
    for (std::size_t i = 0; i < region.bytes; i += coco::os::kLeastLineBytes)
        coco::os::flush_line(region.at + i);
    coco::os::end_flushing();
}

void touch(const Region& region) {
    for (std::size_t i = 0; i < region.bytes; i += 64) region.at[i]++;
}

// Returns: whether the word is an option of Timing.
bool read_option(Timing& t, const std::string& word, const std::function<std::string()>& value) {
    if (word == "--from")
        t.from_bytes = read_bytes(word, value());
    else if (word == "--to")
        t.to_bytes = read_bytes(word, value());
    else if (word == "--rounds")
        t.rounds = static_cast<int>(read_number(word, value(), 1, 1e6));
    else if (word == "--batch-us")
        t.batch_us = read_number(word, value(), 0, 1e9);
    else if (word == "--figure-us")
        t.figure_us = read_number(word, value(), 1, 1e12);
    else if (word == "--settle-us")
        t.settle_us = read_number(word, value(), 0, 1e9);
    else if (word == "--cold")
        t.cold = true;
    else if (word == "--fresh")
        t.fresh = true;
    else if (word == "--csv")
        t.csv = true;
    else
        return false;
    return true;
}

// The mean ratio of the sizes from one to another; 0: there are none.
double geometric_mean(const std::vector<std::pair<long, double>>& ratios, long from_bytes, long to_bytes) {
    double log_sum = 0;
    int sizes = 0;
    for (auto [bytes, ratio] : ratios)
        if (bytes >= from_bytes && bytes <= to_bytes) log_sum += std::log(ratio), ++sizes;
    return sizes != 0 ? std::exp(log_sum / sizes) : 0.0;
}

}  // namespace

int rank() {
    static const int value = ask_world(&MPI_Comm_rank);
    return value;
}

int ranks() {
    static const int value = ask_world(&MPI_Comm_size);
    return value;
}

void give_up(const std::string& why) {
    if (rank() == 0) std::fprintf(stderr, "%s\n", why.c_str());
    MPI_Finalize();
    std::exit(2);
}

double read_number(const std::string& what, const std::string& text, double least, double most) {
    char* end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    char range[64];
    std::snprintf(range, sizeof range, "%.10g to %.10g", least, most);
    if (text.empty() || *end != 0 || !(value >= least && value <= most))
        give_up(what + ": '" + text + "' is no number from " + range);
    return value;
}

Timing read_timing(int argc, char** argv, Timing t, const Taker& take) {
    for (int i = 1; i < argc; ++i) {
        std::string word = argv[i];
        auto value = [&]() -> std::string {
            if (i + 1 == argc) give_up(word + " needs a value");
            return argv[++i];
        };
        if (!read_option(t, word, value) && !take(word, value)) give_up("unknown word " + word);
    }
    if (t.from_bytes > t.to_bytes) give_up("--from is larger than --to");
    return t;
}

void* own_function(const char* name) {
    if (void* handle = dlopen(MPI_LIBRARY_FILE, RTLD_NOLOAD | RTLD_LAZY))
        if (void* address = dlsym(handle, name)) return address;
    give_up(std::string("no ") + name + " in the loaded MPI library");
}

double time_batch(const Call& call, int batch, const Timing& t, const Buffers& b) {
    static const auto allreduce = own(&MPI_Allreduce, "PMPI_Allreduce");
    static const auto barrier = own(&MPI_Barrier, "PMPI_Barrier");
    if (t.cold) {
        for (const Region& region : {b.send, b.recv}) flush_cache(region);
        for (const Region& region : {b.send, b.recv}) touch(region);
    }
    barrier(MPI_COMM_WORLD);
    double seconds = 0, begin = MPI_Wtime();
    for (int i = 0; i < batch; ++i) {
        if (t.fresh) {
            touch(b.send);
            begin = MPI_Wtime();
        }
        call();
        if (t.fresh) seconds += MPI_Wtime() - begin;
    }
    if (!t.fresh) seconds = MPI_Wtime() - begin;
    double mine = seconds / batch * 1e6, slowest = 0;
    allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

Figure measure(const Pair& pair, const Timing& t, const Buffers& b) {
    double guess = std::max(time_batch(pair.library, 1, t, b), 0.05);
    int warm = static_cast<int>(std::clamp(t.figure_us / 32 / guess, 1.0, 10.0));
    for (int i = 0; i < 3 && warm > 1; ++i)
        guess = std::max(time_batch(pair.library, t.cold ? 1 : warm, t, b), 0.05);
    time_batch(pair.ours, warm, t, b);
    double most = t.figure_us / (2 * guess);  // calls of each that there is time for
    int batch = t.cold ? 1 : static_cast<int>(std::clamp(t.batch_us / guess, 5.0, 20000.0));
    int rounds = t.cold ? t.rounds * 16 : t.rounds;
    if (batch * rounds > most) batch = std::max(1, static_cast<int>(most / rounds));
    if (batch * rounds > most)
        rounds = std::clamp(static_cast<int>(most / batch), std::min(3, rounds), rounds);
    // All ranks spend as long, as a batch takes as long as on its slowest rank.
    for (double spent_us = 0; spent_us < t.settle_us;)
        spent_us += batch * std::max(time_batch(pair.ours, batch, t, b), 0.01);
    std::vector<double> ours, library;
    for (int i = 0; i < rounds; ++i) {
        ours.push_back(time_batch(pair.ours, batch, t, b));
        library.push_back(time_batch(pair.library, batch, t, b));
    }
    return {median(ours), median(library)};
}

Table::Table(const std::string& title, std::string key, bool csv) : key_(std::move(key)), csv_(csv) {
    if (rank() == 0 && !csv_)
        std::printf("%s\n%10s %12s %12s %8s\n", title.c_str(), "bytes", "MPI_X us", "library us", "ratio");
}

void Table::row(long bytes, const Figure& f) {
    ratios_.emplace_back(bytes, f.ratio());
    if (rank() != 0) return;
    if (csv_)
        std::printf("%s,%ld,%.3f,%.3f,%.3f\n", key_.c_str(), bytes, f.ours_us, f.library_us, f.ratio());
    else
        std::printf("%10ld %12.3f %12.3f %8.2f\n", bytes, f.ours_us, f.library_us, f.ratio());
    std::fflush(stdout);
}

void Table::end() const {
    if (rank() != 0 || csv_) return;
    auto worst = std::ranges::min_element(ratios_, {}, [](const auto& r) { return r.second; });
    std::printf("%10s geometric mean %.2f, to 1 KiB %.2f, to 4 KiB %.2f, from 8 KiB %.2f, worst %.2f\n", "",
                geometric_mean(ratios_, 0, LONG_MAX), geometric_mean(ratios_, 0, 1024),
                geometric_mean(ratios_, 0, 4096), geometric_mean(ratios_, 8192, LONG_MAX), worst->second);
    std::fflush(stdout);
}

}  // namespace bench
