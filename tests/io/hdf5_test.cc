// SPDX-License-Identifier: BSD-3-Clause
//
// Parallel HDF5 under libcoco: one file of all ranks, written and read by parts of a matrix: rows, columns,
// every other column out of memory with gaps, chunks, single elements; all ranks together and each for
// itself. What is read must be what was written. Argument: the folder for the file.
#include <hdf5.h>
#include <mpi.h>

#include <string>
#include <vector>

#include "path.h"
#include "support/check.h"

namespace {

using namespace test;

constexpr hsize_t kRows = 24, kColumns = 6;  // of each rank

int value(int rank, hsize_t row, hsize_t column, int round) {
    return round * 10'000'000 + rank * 100'000 + static_cast<int>(row * 100 + column);
}

// How a rank's part of the matrix lies in the file: whole rows or whole columns.
struct Part {
    bool columns, chunked, collective;
    hsize_t size(int dimension) const {
        const hsize_t own[] = {kRows, kColumns};
        const bool shared = dimension == (columns ? 1 : 0);
        return own[dimension] * (shared ? static_cast<hsize_t>(world_size()) : 1);
    }
    hsize_t start(int dimension, int rank) const {
        const hsize_t own[] = {kRows, kColumns};
        return dimension == (columns ? 1 : 0) ? own[dimension] * static_cast<hsize_t>(rank) : 0;
    }
};

hid_t select_part(const Part& part, int rank, hid_t dataset) {
    const hsize_t start[] = {part.start(0, rank), part.start(1, rank)}, count[] = {kRows, kColumns};
    const hid_t space = H5Dget_space(dataset);
    CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, count, nullptr) >= 0);
    return space;
}

// Memory in which every second int belongs to the matrix.
hid_t gapped_memory() {
    const hsize_t sizes[] = {kRows, 2 * kColumns}, start[] = {0, 0}, stride[] = {1, 2},
                  count[] = {kRows, kColumns};
    const hid_t space = H5Screate_simple(2, sizes, nullptr);
    CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, nullptr) >= 0);
    return space;
}

std::vector<int> matrix_of(int rank, int round, int others) {
    std::vector<int> ints(kRows * kColumns * 2, others);
    for (hsize_t r = 0; r < kRows; ++r)
        for (hsize_t c = 0; c < kColumns; ++c) ints[(r * kColumns + c) * 2] = value(rank, r, c, round);
    return ints;
}

hid_t transfer(const Part& part) {
    const hid_t plan = H5Pcreate(H5P_DATASET_XFER);
    CHECK(H5Pset_dxpl_mpio(plan, part.collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT) >= 0);
    return plan;
}

hid_t make_dataset(hid_t file, const Part& part, int round) {
    const hsize_t sizes[] = {part.size(0), part.size(1)}, chunk[] = {5, 4};
    const hid_t space = H5Screate_simple(2, sizes, nullptr), plan = H5Pcreate(H5P_DATASET_CREATE);
    if (part.chunked) H5Pset_chunk(plan, 2, chunk);
    const std::string name = "matrix " + std::to_string(round);
    const hid_t dataset =
        H5Dcreate2(file, name.c_str(), H5T_NATIVE_INT, space, H5P_DEFAULT, plan, H5P_DEFAULT);
    CHECK(dataset >= 0);
    H5Pclose(plan);
    H5Sclose(space);
    return dataset;
}

// Writes this rank's part and reads the next rank's.
void write_and_read(hid_t file, const Part& part, int round) {
    const int rank = world_rank(), other = (rank + 1) % world_size();
    const hid_t dataset = make_dataset(file, part, round), memory = gapped_memory(), plan = transfer(part);
    const hid_t mine = select_part(part, rank, dataset), next = select_part(part, other, dataset);
    const std::vector<int> sent = matrix_of(rank, round, -1);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, memory, mine, plan, sent.data()) >= 0);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    MPI_Barrier(MPI_COMM_WORLD);
    std::vector<int> got(sent.size(), -2);
    CHECK(H5Dread(dataset, H5T_NATIVE_INT, memory, next, plan, got.data()) >= 0);
    CHECK(got == matrix_of(other, round, -2));
    for (hid_t space : {mine, next, memory}) H5Sclose(space);
    H5Pclose(plan);
    H5Dclose(dataset);
    MPI_Barrier(MPI_COMM_WORLD);
}

// A few elements of a line, here and there: each rank has those of one remainder.
void write_points(hid_t file) {
    const auto size = static_cast<hsize_t>(world_size()), rank = static_cast<hsize_t>(world_rank());
    constexpr hsize_t kPoints = 10;
    const hsize_t all = kPoints * size;
    std::vector<hsize_t> at;
    std::vector<int> sent, got(kPoints, -1), line(all, -1);
    for (hsize_t i = 0; i < kPoints; ++i) {
        at.push_back((kPoints - 1 - i) * size + rank);
        sent.push_back(static_cast<int>(at.back()) * 3);
    }
    const hid_t space = H5Screate_simple(1, &all, nullptr), memory = H5Screate_simple(1, &kPoints, nullptr);
    const hid_t dataset =
        H5Dcreate2(file, "line", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t plan = transfer({false, false, true});
    CHECK(H5Sselect_elements(space, H5S_SELECT_SET, kPoints, at.data()) >= 0);
    CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, plan, sent.data()) >= 0);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(H5Dread(dataset, H5T_NATIVE_INT, memory, space, plan, got.data()) >= 0);
    CHECK(got == sent);
    CHECK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, plan, line.data()) >= 0);
    for (hsize_t i = 0; i < all; ++i) CHECK(line[i] == static_cast<int>(i) * 3);
    H5Pclose(plan);
    H5Sclose(space);
    H5Sclose(memory);
    H5Dclose(dataset);
}

// Checks an attribute of the file, written by all ranks alike.
void check_attribute(hid_t file, bool write) {
    int number = 4711;
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t attribute = write
                                ? H5Acreate2(file, "number", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT)
                                : H5Aopen(file, "number", H5P_DEFAULT);
    if (write) CHECK(H5Awrite(attribute, H5T_NATIVE_INT, &number) >= 0);
    number = 0;
    CHECK(H5Aread(attribute, H5T_NATIVE_INT, &number) >= 0 && number == 4711);
    H5Aclose(attribute);
    H5Sclose(space);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const std::string name = path_of(argc, argv, "hdf5");
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    CHECK(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0);
    hid_t file = H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
    CHECK(file >= 0);
    int round = 0;
    for (bool columns : {false, true})
        for (bool chunked : {false, true})
            for (bool collective : {true, false})
                write_and_read(file, {columns, chunked, collective}, ++round);
    write_points(file);
    check_attribute(file, true);
    CHECK(H5Fclose(file) >= 0);
    file = H5Fopen(name.c_str(), H5F_ACC_RDONLY, access);
    CHECK(file >= 0);
    check_attribute(file, false);
    H5Fclose(file);
    H5Pclose(access);
    if (world_rank() == 0) MPI_File_delete(name.c_str(), MPI_INFO_NULL);
    const int verdict = finish("hdf5");
    MPI_Finalize();
    return verdict;
}
