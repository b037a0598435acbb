// SPDX-License-Identifier: BSD-3-Clause
//
// How quickly a rank that waits in a collective serves others: rank 0 comes late to an allgather in which all
// others wait already, and until it comes it asks one of them by one-sided communication and by synchronous
// messages. The library's own allgather and MPI_Allgather take turns. A figure is the median of all
// operations of a kind, and the 95th percentile behind it. `gap`: how long rank 0 computes between two
// operations.
//
//     mpiexec -n 2 coco run bench/service [--turns N] [--operations N] [--gap-us US]...
#include <algorithm>
#include <cstdio>
#include <vector>

#include "turns.h"

namespace {

using Microseconds = std::vector<double>;

void compute_us(double us) {
    const double end = MPI_Wtime() + us * 1e-6;
    while (MPI_Wtime() < end) {
    }
}

struct Plan {
    int rounds = 9, operations = 40;
    std::vector<double> gaps_us;
};

constexpr double kLate_us = 20'000;  // long enough for the others to have gone to sleep, if they ever do

// A service that rank 0 asks of the last rank; both know all services.
struct Service {
    const char* name;
    // Before the last rank enters the collective.
    void (*offer)(MPI_Win, int operations, std::vector<MPI_Request>&);
    void (*ask)(MPI_Win, int peer);
};

long g_operand = 1, g_result = 0;
char g_byte = 0;

void offer_nothing(MPI_Win, int, std::vector<MPI_Request>&) {}
void offer_receives(MPI_Win, int operations, std::vector<MPI_Request>& requests) {
    for (int i = 0; i < operations; ++i)
        MPI_Irecv(&g_byte, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests.emplace_back());
}
void fetch_and_add(MPI_Win window, int peer) {
    MPI_Fetch_and_op(&g_operand, &g_result, MPI_LONG, peer, 0, MPI_SUM, window);
    MPI_Win_flush(peer, window);
}
void get(MPI_Win window, int peer) {
    MPI_Get(&g_result, 1, MPI_LONG, peer, 0, 1, MPI_LONG, window);
    MPI_Win_flush(peer, window);
}
void accumulate(MPI_Win window, int peer) {
    MPI_Accumulate(&g_operand, 1, MPI_LONG, peer, 0, 1, MPI_LONG, MPI_SUM, window);
    MPI_Win_flush(peer, window);
}
void send_synchronously(MPI_Win, int peer) { MPI_Ssend(&g_byte, 1, MPI_CHAR, peer, 1, MPI_COMM_WORLD); }

constexpr Service kServices[] = {{"fetch_and_op", offer_nothing, fetch_and_add},
                                 {"get", offer_nothing, get},
                                 {"accumulate", offer_nothing, accumulate},
                                 {"ssend", offer_receives, send_synchronously}};

void one_round(const Service& service, const bench::Call& allgather, MPI_Win window, int operations,
               double gap_us, Microseconds& times) {
    const int last = bench::ranks() - 1;
    std::vector<MPI_Request> requests;
    MPI_Barrier(MPI_COMM_WORLD);
    if (bench::rank() == last) service.offer(window, operations, requests);
    if (bench::rank() == 0) {
        compute_us(kLate_us);
        for (int i = 0; i < operations; ++i) {
            compute_us(gap_us);
            const double begin = MPI_Wtime();
            service.ask(window, last);
            times.push_back((MPI_Wtime() - begin) * 1e6);
        }
    }
    allgather();
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

double percentile(Microseconds times, double share) {
    std::ranges::sort(times);
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
}

Plan read_plan(int argc, char** argv) {
    Plan plan;
    bench::read_timing(argc, argv, {}, [&](const std::string& word, const auto& value) {
        if (word == "--operations")
            plan.operations = static_cast<int>(bench::read_number(word, value(), 1, 1e6));
        else if (word == "--turns")
            plan.rounds = static_cast<int>(bench::read_number(word, value(), 1, 1e6));
        else if (word == "--gap-us")
            plan.gaps_us.push_back(bench::read_number(word, value(), 0, 1e6));
        else
            return false;
        return true;
    });
    if (plan.gaps_us.empty()) plan.gaps_us = {0, 50, 1000};
    return plan;
}

void measure(const Service& service, const bench::Pair& allgather, MPI_Win window, const Plan& plan,
             double gap_us) {
    Microseconds ours, library;
    for (int i = 0; i < plan.rounds; ++i) {
        one_round(service, allgather.library, window, plan.operations, gap_us, library);
        one_round(service, allgather.ours, window, plan.operations, gap_us, ours);
    }
    if (bench::rank() == 0)
        std::printf("%-14s %8.0f  %9.2f %9.2f  %9.2f %9.2f\n", service.name, gap_us, percentile(library, 0.5),
                    percentile(library, 0.95), percentile(ours, 0.5), percentile(ours, 0.95));
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const Plan plan = read_plan(argc, argv);
    if (bench::ranks() < 2) bench::give_up("it takes two ranks to serve one another");
    std::vector<int> all(static_cast<std::size_t>(bench::ranks()));
    int mine = bench::rank();
    const bench::Pair allgather = bench::pair_of(MPI_Allgather, "PMPI_Allgather", &mine, 1, MPI_INT,
                                                 all.data(), 1, MPI_INT, MPI_COMM_WORLD);
    long memory = 0;
    MPI_Win window;
    MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_lock_all(0, window);
    if (bench::rank() == 0)
        std::printf("%d ranks; us of an operation: library's median, 95 %%; ours\n", bench::ranks());
    for (int i = 0; i < 10; ++i) allgather.ours();
    for (const Service& service : kServices)
        for (double gap_us : plan.gaps_us) measure(service, allgather, window, plan, gap_us);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
}
