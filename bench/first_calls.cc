// SPDX-License-Identifier: BSD-3-Clause
//
// The first calls of a program: MPI_Init and calls of one collective with blocks of one size, each behind a
// barrier. Rank 0 prints a line, in microseconds of the slowest rank: MPI_Init with a barrier behind it, and
// the calls in sum. first_calls.py runs it without and with libcoco, in turns: what came first is over in a
// second measurement by the same process.
//
//     mpiexec -n 2 bench/first_calls [COLLECTIVE] [--bytes 8] [--calls 1,2,5,12,40,100,300] [--dup] [--touched]
// --calls: so many calls in sum. --dup: on a communicator of their own, made just before.
// --touched: receive buffers that the program has written to; else they are as malloc gave them.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sstream>
#include <string>
#include <vector>

#include "calls.h"
#include "turns.h"

namespace {

struct Wanted {
    std::string collective = "alltoall";
    long bytes = 8;
    std::vector<int> calls{1, 2, 5, 12, 40, 100, 300};
    bool dup = false, touched = false;
};

std::vector<int> read_numbers(const std::string& what, const std::string& text) {
    std::vector<int> numbers;
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, ',');) {
        const int least = numbers.empty() ? 1 : numbers.back() + 1;
        numbers.push_back(static_cast<int>(bench::read_number(what, word, least, 1e6)));
    }
    if (numbers.empty()) bench::give_up(what + " lacks a number");
    return numbers;
}

Wanted read_words(int argc, char** argv) {
    Wanted wanted;
    bench::read_timing(argc, argv, {}, [&](const std::string& word, const auto& value) {
        if (word == "--bytes")
            wanted.bytes = static_cast<long>(bench::read_number(word, value(), 0, 1 << 30));
        else if (word == "--calls")
            wanted.calls = read_numbers(word, value());
        else if (word == "--dup")
            wanted.dup = true;
        else if (word == "--touched")
            wanted.touched = true;
        else if (word[0] != '-')
            wanted.collective = word;
        else
            return false;
        return true;
    });
    return wanted;
}

char* take(std::size_t bytes, bool written) {
    auto* memory = static_cast<char*>(std::malloc(bytes));
    if (memory == nullptr) bench::give_up("no memory");
    if (written) std::memset(memory, bench::rank(), bytes);
    return memory;
}

std::vector<double> time_calls(const Wanted& wanted, MPI_Comm comm) {
    const auto ranks = static_cast<std::size_t>(bench::ranks());
    const std::size_t bytes = ranks * static_cast<std::size_t>(wanted.bytes) + 1;
    bench::Blocks blocks{take(bytes, true), take(bytes, wanted.touched), std::vector<int>(ranks),
                         std::vector<int>(ranks), std::vector<MPI_Datatype>(ranks, MPI_BYTE)};
    const bench::Call call = bench::calls_of(wanted.collective, blocks, wanted.bytes, comm).ours;
    std::vector<double> us(static_cast<std::size_t>(wanted.calls.back()));
    for (double& one : us) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin_s = MPI_Wtime();
        call();
        one = (MPI_Wtime() - begin_s) * 1e6;
    }
    return us;
}

std::vector<double> of_slowest(std::vector<double> mine) {
    std::vector<double> most(mine.size());
    MPI_Reduce(mine.data(), most.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_MAX, 0,
               MPI_COMM_WORLD);
    return most;
}

}  // namespace

int main(int argc, char** argv) {
    timespec begin{}, end{};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);  // else who communicates in MPI_Init pays for what the first message costs
    clock_gettime(CLOCK_MONOTONIC, &end);
    const Wanted wanted = read_words(argc, argv);
    MPI_Comm comm = MPI_COMM_WORLD;
    if (wanted.dup) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    std::vector<double> us = time_calls(wanted, comm);
    us.push_back(static_cast<double>(end.tv_sec - begin.tv_sec) * 1e6 +
                 static_cast<double>(end.tv_nsec - begin.tv_nsec) / 1e3);
    us = of_slowest(us);
    if (bench::rank() == 0) {
        std::printf("%.1f", us.back());
        double sum = 0;
        std::size_t done = 0;
        for (const int calls : wanted.calls) {
            while (done < static_cast<std::size_t>(calls)) sum += us[done++];
            std::printf(" %.2f", sum);
        }
        std::printf("\n");
    }
    MPI_Finalize();
}
