// SPDX-License-Identifier: BSD-3-Clause
//
// The transpose of a matrix that the ranks hold by rows, as codes do it whose arrays are static (the older
// NAS benchmarks, Fortran's COMMON) or automatic (on the stack): what such arrays cost against the same ones
// on the heap. The three take turns, and transpose back and forth, so that each array is sent and received.
//
// usage: mpiexec -n N coco run transpose_static [EDGE] [TURNS]       by default 1024 and 60; at most 1024
// rows and columns
//
// Prints for each kind the median of the slowest rank's time from the tenth turn on, and its speed against
// the heap's; then whether all results were right.
#include <mpi.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace {

constexpr std::size_t kEdgeMost = 1024, kWords = kEdgeMost * kEdgeMost;
constexpr int kWarmUpTurns = 10;

struct Arrays {
    double* matrix;
    double* send;
    double* recv;
};

int rank() {
    int number = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    return number;
}
int ranks() {
    int number = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &number);
    return number;
}

// rows x edge in matrix -> the same of the transposed one.
void transpose(const Arrays& arrays, std::size_t edge) {
    const auto parts = static_cast<std::size_t>(ranks());
    const std::size_t rows = edge / parts;
    for (std::size_t part = 0; part < parts; ++part)
        for (std::size_t column = 0; column < rows; ++column)
            for (std::size_t row = 0; row < rows; ++row)
                arrays.send[(part * rows + column) * rows + row] =
                    arrays.matrix[row * edge + part * rows + column];
    const int count = static_cast<int>(rows * rows);
    MPI_Alltoall(arrays.send, count, MPI_DOUBLE, arrays.recv, count, MPI_DOUBLE, MPI_COMM_WORLD);
    for (std::size_t part = 0; part < parts; ++part)
        for (std::size_t row = 0; row < rows; ++row)
            for (std::size_t column = 0; column < rows; ++column)
                arrays.matrix[row * edge + part * rows + column] =
                    arrays.recv[(part * rows + row) * rows + column];
}

void fill(const Arrays& arrays, std::size_t edge) {
    const std::size_t rows = edge / static_cast<std::size_t>(ranks()),
                      first = static_cast<std::size_t>(rank()) * rows;
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t column = 0; column < edge; ++column)
            arrays.matrix[row * edge + column] = static_cast<double>((first + row) * edge + column);
}

bool is_transposed(const Arrays& arrays, std::size_t edge, bool once) {
    const std::size_t rows = edge / static_cast<std::size_t>(ranks()),
                      first = static_cast<std::size_t>(rank()) * rows;
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t column = 0; column < edge; ++column) {
            const std::size_t wanted = once ? column * edge + first + row : (first + row) * edge + column;
            if (arrays.matrix[row * edge + column] != static_cast<double>(wanted)) return false;
        }
    return true;
}

double slowest_seconds(const Arrays& arrays, std::size_t edge) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    transpose(arrays, edge);
    const double mine = MPI_Wtime() - begin;
    double slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

double g_matrix[kWords], g_send[kWords], g_recv[kWords];

int run(std::size_t edge, int turns) {
    double matrix[kWords], send[kWords], recv[kWords];  // automatic
    std::vector<double> heap(3 * kWords);
    const char* const names[] = {"heap", "static", "automatic"};
    const Arrays kinds[] = {{heap.data(), heap.data() + kWords, heap.data() + 2 * kWords},
                            {g_matrix, g_send, g_recv},
                            {matrix, send, recv}};
    std::vector<double> seconds[3];
    int wrong = 0;
    for (const Arrays& kind : kinds) fill(kind, edge);
    for (int turn = 0; turn < turns; ++turn)
        for (int k = 0; k < 3; ++k) {
            const double took = slowest_seconds(kinds[k], edge);
            if (turn >= kWarmUpTurns) seconds[k].push_back(took);
            wrong += is_transposed(kinds[k], edge, turn % 2 == 0) ? 0 : 1;
        }
    double medians[3] = {};
    for (int k = 0; k < 3; ++k) {
        const auto middle = seconds[k].begin() + static_cast<std::ptrdiff_t>(seconds[k].size() / 2);
        std::nth_element(seconds[k].begin(), middle, seconds[k].end());
        medians[k] = *middle;
    }
    int all_wrong = 0;
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank() == 0) {
        for (int k = 0; k < 3; ++k)
            std::printf("%-10s %8.3f ms  %.2f of the heap's speed\n", names[k], medians[k] * 1e3,
                        medians[0] / medians[k]);
        std::printf("%s\n", all_wrong == 0 ? "all right" : "WRONG");
    }
    return all_wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    // Automatic arrays of 24 MiB want a larger stack than the usual one: the program begins once more with
    // it.
    rlimit stack{};
    getrlimit(RLIMIT_STACK, &stack);
    constexpr rlim_t kStackBytes = 64u << 20;
    if (stack.rlim_cur < kStackBytes && std::getenv("TRANSPOSE_STATIC_AGAIN") == nullptr) {
        stack.rlim_cur = std::min(kStackBytes, stack.rlim_max);
        setrlimit(RLIMIT_STACK, &stack);
        setenv("TRANSPOSE_STATIC_AGAIN", "1", 1);
        execv("/proc/self/exe", argv);
    }
    MPI_Init(&argc, &argv);
    const std::size_t edge = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : kEdgeMost;
    const int turns = argc > 2 ? std::atoi(argv[2]) : 60;
    const auto parts = static_cast<std::size_t>(ranks());
    if (edge == 0 || edge > kEdgeMost || edge % parts != 0 || turns <= kWarmUpTurns) {
        std::fprintf(stderr,
                     "usage: transpose_static [EDGE] [TURNS], EDGE a multiple of the ranks, %zu at most; "
                     "TURNS above %d\n",
                     kEdgeMost, kWarmUpTurns);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const int status = run(edge, turns);
    MPI_Finalize();
    return status;
}
