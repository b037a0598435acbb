// SPDX-License-Identifier: BSD-3-Clause
//
// Bcasts as BLACS, and so ScaLAPACK, makes them: of a small block of a matrix, by a type that is made for the
// call and freed behind it, from each rank in turns. A call is all of that, in both editions.
//
//     mpiexec -n 4 coco run bench/new_types [--rows N] and options of bench/collective
// --rows: of the matrix of complex numbers, 64 by itself, no fewer than the block has; a block is 1 x 1, 2 x
// 2 and so on up to 8 x 8. With 1 row blocks are whole columns, without holes.
#include <algorithm>
#include <string>
#include <vector>

#include "turns.h"

namespace {

using Bcast = int (*)(void*, int, MPI_Datatype, int, MPI_Comm);

void call_with_new_type(Bcast bcast, std::vector<char>& matrix, int block, int rows, int& root) {
    MPI_Datatype type;
    MPI_Type_vector(block, block, std::max(block, rows), MPI_C_DOUBLE_COMPLEX, &type);
    MPI_Type_commit(&type);
    bcast(matrix.data(), 1, type, root, MPI_COMM_WORLD);
    MPI_Type_free(&type);
    root = (root + 1) % bench::ranks();
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    constexpr int kBlockMost = 8, kRowsMost = 1000;
    int rows = 64;
    const bench::Timing timing =
        bench::read_timing(argc, argv, {}, [&](const std::string& word, const auto& value) {
            if (word != "--rows") return false;
            rows = static_cast<int>(bench::read_number(word, value(), 1, kRowsMost));
            return true;
        });
    std::vector<char> matrix(16 * kBlockMost * kRowsMost);
    const auto library = bench::own(static_cast<Bcast>(MPI_Bcast), "PMPI_Bcast");
    bench::Table table("bcast of blocks of a matrix with " + std::to_string(rows) +
                           " rows, by types that are made for the call",
                       "new_types", timing.csv);
    for (int block = 1; block <= kBlockMost; block *= 2) {
        int root = 0, library_root = 0;
        const bench::Pair pair{[&] { call_with_new_type(MPI_Bcast, matrix, block, rows, root); },
                               [&] { call_with_new_type(library, matrix, block, rows, library_root); }};
        const bench::Region all{matrix.data(), matrix.size()};
        table.row(16L * block * block, bench::measure(pair, timing, {all, all}));
    }
    table.end();
    MPI_Finalize();
}
