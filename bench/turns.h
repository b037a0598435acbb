// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_X against the MPI library's own function, in one process, in turns: what the benchmarks of collectives
// share. Each round is a barrier and a batch of calls of the one, then the same of the other; a round counts
// as its slowest rank, a figure is the median of the rounds.
//
// Every rank calls all of this alike, between MPI_Init and MPI_Finalize, from one thread. What is wrong with
// the command line, rank 0 says in a line, and the program ends with status 2.
#pragma once
#include <mpi.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

int rank();
int ranks();

// Ends the program on all ranks for the reason given.
[[noreturn]] void give_up(const std::string& why);

// The number that `text` is. Gives up unless it is one from `least` to `most`; `what` is what it stands for.
double read_number(const std::string& what, const std::string& text, double least, double most);

struct Timing {
    long from_bytes = 8, to_bytes = 1 << 20;  // of a block; powers of two times from_bytes are measured
    int rounds = 15;
    double batch_us = 3000;   // about what one batch takes the library
    double figure_us = 1e12;  // about what a size may take: else fewer rounds, 3 at least, of fewer calls
    double settle_us = 0;     // about so long ours is called before a size is measured, and learns
    bool cold = false;        // caches flushed, own buffers touched, barrier, one call
    bool fresh = false;       // the send buffer written to before each call
    bool csv = false;
};

// Takes the option or other word of a program's own; `value` gives the word that follows it. Returns: whether
// it is known.
using Taker = std::function<bool(const std::string& word, const std::function<std::string()>& value)>;

// Reads a command line: --from --to (8, 64K, 1M), --rounds, --batch-us, --figure-us, --settle-us, --cold,
// --fresh, --csv, the rest by `take`.
Timing read_timing(int argc, char** argv, Timing defaults, const Taker& take);

// The MPI library's own function, asked from the library itself: libcoco takes PMPI_ names, too.
void* own_function(const char* name);
template <class F>
F own(F, const char* name) {
    return reinterpret_cast<F>(own_function(name));
}

using Call = std::function<void()>;
struct Pair {
    Call ours, library;
};

// One call in both editions: `ours` is MPI_X, `library_name` PMPI_X.
template <class F, class... Arguments>
Pair pair_of(F ours, const char* library_name, Arguments... arguments) {
    F library = own(ours, library_name);
    return {[=] { ours(arguments...); }, [=] { library(arguments...); }};
}

struct Region {
    char* at;
    std::size_t bytes;
};
struct Buffers {
    Region send, recv;
};

// Microseconds a call of the slowest rank, of `batch` calls after a barrier.
double time_batch(const Call& call, int batch, const Timing& t, const Buffers& b);

double median(std::vector<double> v);

struct Figure {
    double ours_us, library_us;
    double ratio() const { return library_us / ours_us; }
};
Figure measure(const Pair& pair, const Timing& t, const Buffers& b);

// The table that rank 0 prints: a row for each size, at the end geometric means and the worst. As CSV: rows
// alone, which open with `key`.
class Table {
  public:
    Table(const std::string& title, std::string key, bool csv);
    void row(long bytes, const Figure& f);
    void end() const;

  private:
    std::string key_;
    bool csv_;
    std::vector<std::pair<long, double>> ratios_;  // by bytes
};

}  // namespace bench
