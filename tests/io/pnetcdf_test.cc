// SPDX-License-Identifier: BSD-3-Clause
//
// PnetCDF under libcoco: a variable of all ranks by rows, by every other column, out of memory in another
// order, by requests that are waited for together, and by each rank for itself. What is read must be what was
// written. Argument: the folder for the file.
#include <mpi.h>
#include <pnetcdf.h>

#include <string>
#include <vector>

#include "path.h"
#include "support/check.h"

namespace {

using namespace test;

constexpr int kRows = 8, kColumns = 10;  // of each rank

void expect(int code) { CHECK_SAYING(code == NC_NOERR, ncmpi_strerror(code)); }

std::vector<int> values_of(int rank, int round) {
    std::vector<int> values;
    for (int i = 0; i < kRows * kColumns; ++i) values.push_back(round * 1'000'000 + rank * 10'000 + i);
    return values;
}

// This rank's place: its rows, or every size-th column.
struct Place {
    MPI_Offset start[2], count[2], stride[2];
};
Place rows_of(int rank) { return {{rank * kRows, 0}, {kRows, kColumns}, {1, 1}}; }
Place columns_of(int rank) { return {{0, rank}, {kColumns, kRows}, {1, world_size()}}; }

void by_rows(int file, int variable) {
    const int rank = world_rank(), other = (rank + 1) % world_size();
    const std::vector<int> sent = values_of(rank, 1);
    std::vector<int> got(sent.size(), -1);
    const Place mine = rows_of(rank), next = rows_of(other);
    expect(ncmpi_put_vara_int_all(file, variable, mine.start, mine.count, sent.data()));
    expect(ncmpi_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    expect(ncmpi_get_vara_int_all(file, variable, next.start, next.count, got.data()));
    CHECK(got == values_of(other, 1));
    MPI_Barrier(MPI_COMM_WORLD);
}

void by_columns(int file, int variable) {
    const int rank = world_rank(), other = (rank + 1) % world_size();
    const std::vector<int> sent = values_of(rank, 2);
    std::vector<int> got(sent.size(), -1);
    const Place mine = columns_of(rank), next = columns_of(other);
    expect(ncmpi_put_vars_int_all(file, variable, mine.start, mine.count, mine.stride, sent.data()));
    expect(ncmpi_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    expect(ncmpi_get_vars_int_all(file, variable, next.start, next.count, next.stride, got.data()));
    CHECK(got == values_of(other, 2));
    MPI_Barrier(MPI_COMM_WORLD);
}

// Memory holds the transpose of what lies in the file.
void transposed(int file, int variable) {
    const int rank = world_rank();
    const std::vector<int> sent = values_of(rank, 3);
    std::vector<int> got(sent.size(), -1);
    const Place mine = rows_of(rank);
    const MPI_Offset order[] = {1, kRows};
    expect(ncmpi_put_varm_int_all(file, variable, mine.start, mine.count, mine.stride, order, sent.data()));
    expect(ncmpi_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    expect(ncmpi_get_vara_int_all(file, variable, mine.start, mine.count, got.data()));
    for (int r = 0; r < kRows; ++r)
        for (int c = 0; c < kColumns; ++c)
            CHECK(got[static_cast<std::size_t>(r * kColumns + c)] ==
                  sent[static_cast<std::size_t>(c * kRows + r)]);
    MPI_Barrier(MPI_COMM_WORLD);
}

// Row by row, all at once, from memory with holes: every second int.
void by_requests(int file, int variable) {
    const int rank = world_rank();
    MPI_Datatype spread;
    MPI_Type_vector(kColumns, 1, 2, MPI_INT, &spread);
    MPI_Type_commit(&spread);
    std::vector<int> sent(kRows * kColumns * 2), got(sent.size(), -1);
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = rank * 10'000 + static_cast<int>(i);
    int requests[kRows], codes[kRows];
    for (bool writes : {true, false}) {
        for (int r = 0; r < kRows; ++r) {
            const MPI_Offset start[] = {rank * kRows + r, 0}, count[] = {1, kColumns};
            int* const memory = (writes ? sent : got).data() + r * kColumns * 2;
            expect(writes ? ncmpi_iput_vara(file, variable, start, count, memory, 1, spread, &requests[r])
                          : ncmpi_iget_vara(file, variable, start, count, memory, 1, spread, &requests[r]));
        }
        expect(ncmpi_wait_all(file, kRows, requests, codes));
        expect(ncmpi_sync(file));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (std::size_t i = 0; i < sent.size(); ++i) CHECK(got[i] == (i % 2 == 0 ? sent[i] : -1));
    MPI_Type_free(&spread);
}

void each_for_itself(int file, int variable) {
    const int rank = world_rank(), other = (rank + 1) % world_size();
    const std::vector<int> sent = values_of(rank, 5);
    std::vector<int> got(sent.size(), -1);
    const Place mine = rows_of(rank), next = rows_of(other);
    expect(ncmpi_begin_indep_data(file));
    expect(ncmpi_put_vara_int(file, variable, mine.start, mine.count, sent.data()));
    expect(ncmpi_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    expect(ncmpi_get_vara_int(file, variable, next.start, next.count, got.data()));
    CHECK(got == values_of(other, 5));
    expect(ncmpi_end_indep_data(file));
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const std::string name = path_of(argc, argv, "pnetcdf");
    int file = -1, dimensions[2], columns[2], rows_variable = -1, columns_variable = -1;
    expect(ncmpi_create(MPI_COMM_WORLD, name.c_str(), NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
    expect(ncmpi_def_dim(file, "rows", kRows * world_size(), &dimensions[0]));
    expect(ncmpi_def_dim(file, "columns", kColumns, &dimensions[1]));
    expect(ncmpi_def_dim(file, "lines", kColumns, &columns[0]));
    expect(ncmpi_def_dim(file, "turns", kRows * world_size(), &columns[1]));
    expect(ncmpi_def_var(file, "by rows", NC_INT, 2, dimensions, &rows_variable));
    expect(ncmpi_def_var(file, "by columns", NC_INT, 2, columns, &columns_variable));
    expect(ncmpi_put_att_text(file, NC_GLOBAL, "title", 5, "tests"));
    expect(ncmpi_enddef(file));
    by_rows(file, rows_variable);
    by_columns(file, columns_variable);
    transposed(file, rows_variable);
    by_requests(file, rows_variable);
    each_for_itself(file, rows_variable);
    expect(ncmpi_close(file));
    if (world_rank() == 0) expect(ncmpi_delete(name.c_str(), MPI_INFO_NULL));
    const int verdict = finish("pnetcdf");
    MPI_Finalize();
    return verdict;
}
