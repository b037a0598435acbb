// SPDX-License-Identifier: BSD-3-Clause
//
// Alltoalls of two sizes in turns, so that no call repeats the last one: what it takes to choose anew for each. Prints the median of some
// rounds, of the slowest rank; the library below is measured by a run of the same program without libcoco.
//
//     mpiexec -n 2 bench/alternating [--calls N]; the same behind coco run
//     mpiexec -n 2 bench/alternating --rules N > FILE: only writes a policy of N rules for other numbers of ranks, before the built-in ones
// --calls: of a round; 100,000 by itself.
#include <cstdio>
#include <vector>

#include "turns.h"

namespace {

constexpr int kBytes[] = {8, 16};

double round_ns(int calls) {
    std::vector<char> send(static_cast<std::size_t>(bench::ranks() * kBytes[1])), recv(send.size());
    MPI_Barrier(MPI_COMM_WORLD);
    double mine_ns = -MPI_Wtime() * 1e9, most_ns = 0;
    for (int i = 0; i < calls; ++i)
        MPI_Alltoall(send.data(), kBytes[i % 2], MPI_BYTE, recv.data(), kBytes[i % 2], MPI_BYTE,
                     MPI_COMM_WORLD);
    mine_ns = (mine_ns + MPI_Wtime() * 1e9) / calls;
    MPI_Allreduce(&mine_ns, &most_ns, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most_ns;
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
    int calls = 100'000, rules = 0;
    bench::read_timing(argc, argv, {}, [&](const std::string& word, const auto& value) {
        if (word == "--calls")
            calls = static_cast<int>(bench::read_number(word, value(), 10, 1e8));
        else if (word == "--rules")
            rules = static_cast<int>(bench::read_number(word, value(), 1, 1e5));
        else
            return false;
        return true;
    });
    if (rules != 0) {
        if (bench::rank() == 0) write_rules(rules);
    } else {
        std::vector<double> rounds_ns;
        for (int round = 0; round < 7; ++round) rounds_ns.push_back(round_ns(calls));
        if (bench::rank() == 0)
            std::printf("%d ranks, alltoalls of %d and %d B in turns: %.0f ns a call\n", bench::ranks(),
                        kBytes[0], kBytes[1], bench::median(rounds_ns));
    }
    MPI_Finalize();
}
