// SPDX-License-Identifier: BSD-3-Clause
//
// The cost of a communicator that is made, used a few times and freed: processor time and wall time of a
// turn, of the slowest rank. The library below is measured by a run of the same program without libcoco: to
// duplicate a communicator is to meet what libcoco keeps on it, so that there is nothing to compare with in
// the same process.
//
//     mpiexec -n 2 bench/short_lived [--turns N] [--uses N] [--words N]; the same behind coco run
// --uses: calls on each communicator; 1 to 64 by itself.
// --words: of 8 bytes, in a block of an alltoall; 1 by itself.
#include <sys/resource.h>

#include <cstdio>
#include <vector>

#include "turns.h"

namespace {

double cpu_us() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    auto us = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
    };
    return us(usage.ru_utime) + us(usage.ru_stime);
}

int g_words = 1;  // of a block of an alltoall

using Use = void (*)(MPI_Comm comm, int times);

void bcast(MPI_Comm comm, int times) {
    long word = 0;
    for (int i = 0; i < times; ++i) MPI_Bcast(&word, 1, MPI_LONG, 0, comm);
}
void alltoall(MPI_Comm comm, int times) {
    const auto words = static_cast<std::size_t>(bench::ranks() * g_words);
    static std::vector<long> send(words), recv(words);
    for (int i = 0; i < times; ++i)
        MPI_Alltoall(send.data(), g_words, MPI_LONG, recv.data(), g_words, MPI_LONG, comm);
}
void neighbor_alltoall(MPI_Comm comm, int times) {
    std::vector<long> send(64), recv(64);
    for (int i = 0; i < times; ++i)
        MPI_Neighbor_alltoall(send.data(), 1, MPI_LONG, recv.data(), 1, MPI_LONG, comm);
}

MPI_Comm duplicate() {
    MPI_Comm made;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    return made;
}
MPI_Comm split() {
    MPI_Comm made;
    MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &made);
    return made;
}
// A ring in both directions.
MPI_Comm graph() {
    const int left = (bench::rank() + bench::ranks() - 1) % bench::ranks(),
              right = (bench::rank() + 1) % bench::ranks();
    const int neighbors[] = {left, right}, degree = left == right ? 1 : 2;
    MPI_Comm made;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, neighbors, MPI_UNWEIGHTED, degree, neighbors,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
    return made;
}

struct Life {
    const char* name;
    MPI_Comm (*make)();
    Use use;
};
constexpr Life kLives[] = {{"dup, bcast", duplicate, bcast},
                           {"dup, alltoall", duplicate, alltoall},
                           {"split, bcast", split, bcast},
                           {"split, alltoall", split, alltoall},
                           {"graph, neighbor_alltoall", graph, neighbor_alltoall}};

void live(const Life& life, int times, int turns) {
    for (int i = 0; i < turns; ++i) {
        MPI_Comm comm = life.make();
        life.use(comm, times);
        MPI_Comm_free(&comm);
    }
}

void measure(const Life& life, int times, int turns) {
    live(life, times, turns / 10);
    std::vector<double> cpus, walls;
    for (int round = 0; round < 7; ++round) {
        MPI_Barrier(MPI_COMM_WORLD);
        double mine[2] = {-cpu_us(), -MPI_Wtime() * 1e6}, most[2];
        live(life, times, turns);
        mine[0] += cpu_us(), mine[1] += MPI_Wtime() * 1e6;
        MPI_Allreduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        cpus.push_back(most[0] / turns), walls.push_back(most[1] / turns);
    }
    if (bench::rank() == 0)
        std::printf("%-26s %4d  %9.2f %9.2f\n", life.name, times, bench::median(cpus), bench::median(walls));
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int turns = 1000;
    std::vector<int> uses{1, 2, 3, 4, 8, 16, 32, 64};
    bench::read_timing(argc, argv, {}, [&](const std::string& word, const auto& value) {
        if (word == "--turns")
            turns = static_cast<int>(bench::read_number(word, value(), 10, 1e6));
        else if (word == "--uses")
            uses = {static_cast<int>(bench::read_number(word, value(), 1, 1e6))};
        else if (word == "--words")
            g_words = static_cast<int>(bench::read_number(word, value(), 1, 1e6));
        else
            return false;
        return true;
    });
    if (bench::rank() == 0)
        std::printf("%d ranks; us of processor time and of wall time a turn\n", bench::ranks());
    for (const Life& life : kLives)
        for (int times : uses) measure(life, times, turns);
    MPI_Finalize();
}
