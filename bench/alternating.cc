// SPDX-License-Identifier: BSD-3-Clause
//
// Alltoalls whose size, or whose communicator, is another one from call to call, so that no call repeats the
// one before: what it takes to find the choice for each. Prints the median of some rounds, of the slowest
// rank; the library below is measured by a run of the same program without libcoco.
//
//     mpiexec -n 2 bench/alternating [--calls N] [--sizes N] [--communicators N] [--v]; the same behind coco run
//     mpiexec -n 2 bench/alternating --rules N > FILE: only writes a policy of N rules for other numbers of ranks, before the built-in ones
// --calls: of a round; 100,000 by itself. --sizes: 8 B, 16 B, 24 B and so on, in turns; 2 by itself.
// --communicators: duplicates of MPI_COMM_WORLD, the next one after each turn of sizes; 1 by itself. --v:
// MPI_Alltoallv with blocks of the same sizes.
#include <cstdio>
#include <vector>

#include "turns.h"

namespace {

struct Turns {
    int calls = 100'000, sizes = 2, communicators = 1;
    bool is_v = false;
};

constexpr int kStepBytes = 8;

// The call number i of a round.
class Caller {
  public:
    explicit Caller(const Turns& turns) : turns_(turns) {
        const auto ranks = static_cast<std::size_t>(bench::ranks());
        send_.resize(ranks * static_cast<std::size_t>(turns.sizes * kStepBytes));
        recv_.resize(send_.size());
        for (int size = 0; size < turns.sizes; ++size) {
            counts_.emplace_back(ranks, bytes_of(size));
            displacements_.emplace_back();
            for (int i = 0; i < bench::ranks(); ++i) displacements_.back().push_back(i * bytes_of(size));
        }
        for (int i = 0; i < turns.communicators; ++i) {
            comms_.emplace_back();
            MPI_Comm_dup(MPI_COMM_WORLD, &comms_.back());
        }
    }
    ~Caller() {
        for (MPI_Comm& comm : comms_) MPI_Comm_free(&comm);
    }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

    void call(int i) {
        const int size = i % turns_.sizes;
        MPI_Comm comm = comms_[static_cast<std::size_t>(i / turns_.sizes % turns_.communicators)];
        const int* counts = counts_[static_cast<std::size_t>(size)].data();
        const int* displacements = displacements_[static_cast<std::size_t>(size)].data();
        if (turns_.is_v)
            MPI_Alltoallv(send_.data(), counts, displacements, MPI_BYTE, recv_.data(), counts, displacements,
                          MPI_BYTE, comm);
        else
            MPI_Alltoall(send_.data(), *counts, MPI_BYTE, recv_.data(), *counts, MPI_BYTE, comm);
    }

  private:
    static int bytes_of(int size) { return kStepBytes * (1 + size); }

    Turns turns_;
    std::vector<char> send_, recv_;
    std::vector<std::vector<int>> counts_, displacements_;
    std::vector<MPI_Comm> comms_;
};

double round_ns(Caller& caller, int calls) {
    MPI_Barrier(MPI_COMM_WORLD);
    double mine_ns = -MPI_Wtime() * 1e9, most_ns = 0;
    for (int i = 0; i < calls; ++i) caller.call(i);
    mine_ns = (mine_ns + MPI_Wtime() * 1e9) / calls;
    MPI_Allreduce(&mine_ns, &most_ns, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most_ns;
}

void measure(const Turns& turns) {
    std::vector<double> rounds_ns;
    Caller caller(turns);
    for (int round = 0; round < 7; ++round) rounds_ns.push_back(round_ns(caller, turns.calls));
    if (bench::rank() == 0)
        std::printf("%d ranks, alltoall%s of %d sizes up to %d B on %d communicators: %.0f ns a call\n",
                    bench::ranks(), turns.is_v ? "v" : "", turns.sizes, turns.sizes * kStepBytes,
                    turns.communicators, bench::median(rounds_ns));
}

void write_rules(int count) {
    constexpr const char* kCollectives[] = {"alltoall", "alltoallv", "allgather", "allgatherv"};
    constexpr int kSizes = 20;
    std::puts("otherwise = \"built-in\"");
    for (int i = 0; i < count; ++i)
        std::printf("[[rule]]\ncollective = \"%s\"\nranks = %d\nblock = \"%d-%d\"\nalgorithm = \"naive\"\n",
                    kCollectives[i % 4], 1000 + i / kSizes, 1 << i % kSizes, (2 << i % kSizes) - 1);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Turns turns;
    int rules = 0;
    bench::read_timing(argc, argv, {}, [&](const std::string& word, const auto& value) {
        auto number = [&](double least, double most) {
            return static_cast<int>(bench::read_number(word, value(), least, most));
        };
        if (word == "--calls")
            turns.calls = number(10, 1e8);
        else if (word == "--sizes")
            turns.sizes = number(1, 1000);
        else if (word == "--communicators")
            turns.communicators = number(1, 100);
        else if (word == "--v")
            turns.is_v = true;
        else if (word == "--rules")
            rules = number(1, 1e5);
        else
            return false;
        return true;
    });
    if (rules == 0)
        measure(turns);
    else if (bench::rank() == 0)
        write_rules(rules);
    MPI_Finalize();
}
