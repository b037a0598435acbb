// SPDX-License-Identifier: BSD-3-Clause
//
// Parallel NetCDF-4 under libcoco: a variable of all ranks by rows and by every other column, fixed and
// unlimited, all ranks together and each for itself. What is read must be what was written. Argument: the
// folder for the file.
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>

#include <string>
#include <vector>

#include "path.h"
#include "support/check.h"

namespace {

using namespace test;

constexpr std::size_t kRows = 8, kColumns = 10;  // of each rank

void expect(int code) { CHECK_SAYING(code == NC_NOERR, nc_strerror(code)); }

std::vector<int> values_of(int rank, int round) {
    std::vector<int> values;
    for (std::size_t i = 0; i < kRows * kColumns; ++i)
        values.push_back(round * 1'000'000 + rank * 10'000 + static_cast<int>(i));
    return values;
}

struct Place {
    std::size_t start[2], count[2];
    std::ptrdiff_t stride[2];
};
Place rows_of(int rank) { return {{static_cast<std::size_t>(rank) * kRows, 0}, {kRows, kColumns}, {1, 1}}; }
Place columns_of(int rank) {
    return {{0, static_cast<std::size_t>(rank)}, {kColumns, kRows}, {1, world_size()}};
}

// Writes this rank's place and reads the next rank's.
void write_and_read(int file, int variable, bool collective, Place (*place_of)(int), int round) {
    const int rank = world_rank(), other = (rank + 1) % world_size();
    const std::vector<int> sent = values_of(rank, round);
    std::vector<int> got(sent.size(), -1);
    const Place mine = place_of(rank), next = place_of(other);
    expect(nc_var_par_access(file, variable, collective ? NC_COLLECTIVE : NC_INDEPENDENT));
    expect(nc_put_vars_int(file, variable, mine.start, mine.count, mine.stride, sent.data()));
    expect(nc_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);
    expect(nc_get_vars_int(file, variable, next.start, next.count, next.stride, got.data()));
    CHECK(got == values_of(other, round));
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const std::string name = path_of(argc, argv, "netcdf");
    const std::size_t all_rows = kRows * static_cast<std::size_t>(world_size());
    int file = -1, rows[2], columns[2], growing[2], by_rows = -1, by_columns = -1, by_growth = -1;
    expect(nc_create_par(name.c_str(), NC_CLOBBER | NC_NETCDF4, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
    expect(nc_def_dim(file, "rows", all_rows, &rows[0]));
    expect(nc_def_dim(file, "columns", kColumns, &rows[1]));
    expect(nc_def_dim(file, "lines", kColumns, &columns[0]));
    expect(nc_def_dim(file, "turns", all_rows, &columns[1]));
    expect(nc_def_dim(file, "records", NC_UNLIMITED, &growing[0]));
    growing[1] = rows[1];
    expect(nc_def_var(file, "by rows", NC_INT, 2, rows, &by_rows));
    expect(nc_def_var(file, "by columns", NC_INT, 2, columns, &by_columns));
    expect(nc_def_var(file, "by growth", NC_INT, 2, growing, &by_growth));
    expect(nc_enddef(file));
    for (bool collective : {true, false}) {
        write_and_read(file, by_rows, collective, rows_of, collective ? 1 : 2);
        write_and_read(file, by_columns, collective, columns_of, collective ? 3 : 4);
    }
    write_and_read(file, by_growth, true, rows_of, 5);  // who makes a variable grow does so with all others
    expect(nc_close(file));
    if (world_rank() == 0) MPI_File_delete(name.c_str(), MPI_INFO_NULL);
    const int verdict = finish("netcdf");
    MPI_Finalize();
    return verdict;
}
