// SPDX-License-Identifier: BSD-3-Clause
//
// MPI-IO under libcoco: the MPI library's I/O makes collectives of its own, of absolute addresses and of
// types with holes, and its files are shared by all ranks. Every way to write and every way to read; what is
// read must be what was written. Argument: the folder for the file.
#include <mpi.h>

#include <unistd.h>
#include <algorithm>
#include <string>
#include <vector>

#include "path.h"
#include "support/check.h"

namespace {

using namespace test;

constexpr int kBlockInts = 5;

std::string g_name;

// The values that `rank` writes in a round.
std::vector<int> values_of(int rank, int ints, int round) {
    std::vector<int> values;
    for (int i = 0; i < ints; ++i) values.push_back(round * 100'000'000 + rank * 1'000'000 + i);
    return values;
}

void expect(const std::vector<int>& got, const std::vector<int>& wanted, const char* what) {
    CHECK_SAYING(got == wanted, what);
}

void expect_ints(const MPI_Status& status, int ints, const char* what) {
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_SAYING(count == ints, what);
}

MPI_File open_file() {
    MPI_File file = MPI_FILE_NULL;
    CHECK(MPI_File_open(MPI_COMM_WORLD, g_name.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                        &file) == MPI_SUCCESS);
    return file;
}

// Blocks of all ranks in turn: each rank sees its own.
void set_turns(MPI_File file, MPI_Offset first_byte) {
    MPI_Datatype block = MPI_DATATYPE_NULL, turns = MPI_DATATYPE_NULL;
    const auto bytes = static_cast<MPI_Aint>(kBlockInts * sizeof(int));
    MPI_Type_contiguous(kBlockInts, MPI_INT, &block);
    MPI_Type_create_resized(block, 0, bytes * world_size(), &turns);
    MPI_Type_commit(&turns);
    CHECK(MPI_File_set_view(file, first_byte + world_rank() * bytes, MPI_INT, turns, "native",
                            MPI_INFO_NULL) == MPI_SUCCESS);
    MPI_Type_free(&turns);
    MPI_Type_free(&block);
}

// The whole file, as one stream of ints.
void set_plain(MPI_File file) {
    CHECK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS);
}

// One way to write `from` at an offset in ints and one to read it there, each told the request to wait for.
struct Way {
    const char* name;
    int (*write)(MPI_File, MPI_Offset, const int* from, int ints, MPI_Status*);
    int (*read)(MPI_File, MPI_Offset, int* to, int ints, MPI_Status*);
};

template <class Start>
int finished(Start start, MPI_Status* status) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = start(&request);
    MPI_Wait(&request, status);
    return code;
}

int sought(MPI_File file, MPI_Offset at) { return MPI_File_seek(file, at, MPI_SEEK_SET); }

const Way kWays[] = {
    {"explicit offset",
     [](MPI_File f, MPI_Offset at, const int* p, int n, MPI_Status* s) {
         return MPI_File_write_at(f, at, p, n, MPI_INT, s);
     },
     [](MPI_File f, MPI_Offset at, int* p, int n, MPI_Status* s) {
         return MPI_File_read_at(f, at, p, n, MPI_INT, s);
     }},
    {"explicit offset, collective",
     [](MPI_File f, MPI_Offset at, const int* p, int n, MPI_Status* s) {
         return MPI_File_write_at_all(f, at, p, n, MPI_INT, s);
     },
     [](MPI_File f, MPI_Offset at, int* p, int n, MPI_Status* s) {
         return MPI_File_read_at_all(f, at, p, n, MPI_INT, s);
     }},
    {"explicit offset, split",
     [](MPI_File f, MPI_Offset at, const int* p, int n, MPI_Status* s) {
         MPI_File_write_at_all_begin(f, at, p, n, MPI_INT);
         return MPI_File_write_at_all_end(f, p, s);
     },
     [](MPI_File f, MPI_Offset at, int* p, int n, MPI_Status* s) {
         MPI_File_read_at_all_begin(f, at, p, n, MPI_INT);
         return MPI_File_read_at_all_end(f, p, s);
     }},
    {"explicit offset, nonblocking",
     [](MPI_File f, MPI_Offset at, const int* p, int n, MPI_Status* s) {
         return finished([&](MPI_Request* r) { return MPI_File_iwrite_at(f, at, p, n, MPI_INT, r); }, s);
     },
     [](MPI_File f, MPI_Offset at, int* p, int n, MPI_Status* s) {
         return finished([&](MPI_Request* r) { return MPI_File_iread_at(f, at, p, n, MPI_INT, r); }, s);
     }},
    {"explicit offset, nonblocking and collective",
     [](MPI_File f, MPI_Offset at, const int* p, int n, MPI_Status* s) {
         return finished([&](MPI_Request* r) { return MPI_File_iwrite_at_all(f, at, p, n, MPI_INT, r); }, s);
     },
     [](MPI_File f, MPI_Offset at, int* p, int n, MPI_Status* s) {
         return finished([&](MPI_Request* r) { return MPI_File_iread_at_all(f, at, p, n, MPI_INT, r); }, s);
     }},
    {"own pointer",
     [](MPI_File f, MPI_Offset at, const int* p, int n, MPI_Status* s) {
         sought(f, at);
         return MPI_File_write(f, p, n, MPI_INT, s);
     },
     [](MPI_File f, MPI_Offset at, int* p, int n, MPI_Status* s) {
         sought(f, at);
         return MPI_File_read(f, p, n, MPI_INT, s);
     }},
    {"own pointer, collective",
     [](MPI_File f, MPI_Offset at, const int* p, int n, MPI_Status* s) {
         sought(f, at);
         return MPI_File_write_all(f, p, n, MPI_INT, s);
     },
     [](MPI_File f, MPI_Offset at, int* p, int n, MPI_Status* s) {
         sought(f, at);
         return MPI_File_read_all(f, p, n, MPI_INT, s);
     }},
    {"own pointer, split",
     [](MPI_File f, MPI_Offset at, const int* p, int n, MPI_Status* s) {
         sought(f, at);
         MPI_File_write_all_begin(f, p, n, MPI_INT);
         return MPI_File_write_all_end(f, p, s);
     },
     [](MPI_File f, MPI_Offset at, int* p, int n, MPI_Status* s) {
         sought(f, at);
         MPI_File_read_all_begin(f, p, n, MPI_INT);
         return MPI_File_read_all_end(f, p, s);
     }},
    {"own pointer, nonblocking",
     [](MPI_File f, MPI_Offset at, const int* p, int n, MPI_Status* s) {
         sought(f, at);
         return finished([&](MPI_Request* r) { return MPI_File_iwrite(f, p, n, MPI_INT, r); }, s);
     },
     [](MPI_File f, MPI_Offset at, int* p, int n, MPI_Status* s) {
         sought(f, at);
         return finished([&](MPI_Request* r) { return MPI_File_iread(f, p, n, MPI_INT, r); }, s);
     }},
    {"own pointer, nonblocking and collective",
     [](MPI_File f, MPI_Offset at, const int* p, int n, MPI_Status* s) {
         sought(f, at);
         return finished([&](MPI_Request* r) { return MPI_File_iwrite_all(f, p, n, MPI_INT, r); }, s);
     },
     [](MPI_File f, MPI_Offset at, int* p, int n, MPI_Status* s) {
         sought(f, at);
         return finished([&](MPI_Request* r) { return MPI_File_iread_all(f, p, n, MPI_INT, r); }, s);
     }},
};

// Each rank's ints, behind a head of 24 bytes, in blocks that alternate with the other ranks'.
void turns(MPI_File file, int blocks) {
    const int ints = blocks * kBlockInts;
    int round = 0;
    for (const Way& way : kWays) {
        set_turns(file, 24);
        const std::vector<int> sent = values_of(world_rank(), ints, ++round);
        MPI_Status status;
        CHECK_SAYING(way.write(file, kBlockInts, sent.data(), ints, &status) == MPI_SUCCESS, way.name);
        expect_ints(status, ints, way.name);
        MPI_File_sync(file);
        MPI_Barrier(MPI_COMM_WORLD);
        std::vector<int> got(sent.size(), -1);
        CHECK_SAYING(way.read(file, kBlockInts, got.data(), ints, &status) == MPI_SUCCESS, way.name);
        expect_ints(status, ints, way.name);
        expect(got, sent, way.name);
        // A neighbour's, as they lie in the file.
        set_plain(file);
        const int other = (world_rank() + 1) % world_size();
        std::vector<int> first(kBlockInts, -1);
        const MPI_Offset at = 6 + (world_size() + other) * kBlockInts;
        MPI_File_read_at_all(file, at, first.data(), kBlockInts, MPI_INT, &status);
        expect(first, values_of(other, kBlockInts, round), way.name);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// Memory with holes, too: every second int.
void holes_in_memory(MPI_File file, int blocks) {
    const int ints = blocks * kBlockInts;
    MPI_Datatype spread = MPI_DATATYPE_NULL;
    MPI_Type_vector(ints, 1, 2, MPI_INT, &spread);
    MPI_Type_commit(&spread);
    const std::vector<int> sent = values_of(world_rank(), 2 * ints, 7);
    std::vector<int> got(sent.size(), -1), wanted(sent.size(), -1);
    for (std::size_t i = 0; i < sent.size(); i += 2) wanted[i] = sent[i];
    set_turns(file, 0);
    MPI_File_write_at_all(file, 0, sent.data(), 1, spread, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at_all(file, 0, got.data(), 1, spread, MPI_STATUS_IGNORE);
    expect(got, wanted, "every second int of memory");
    MPI_Type_free(&spread);
}

// A matrix of which each rank has some columns, by a subarray of the file.
void columns(MPI_File file) {
    const int size = world_size(), rank = world_rank(), rows = 12;
    const int sizes[] = {rows, 3 * size}, own[] = {rows, 3}, at[] = {0, 3 * rank};
    MPI_Datatype part = MPI_DATATYPE_NULL;
    MPI_Type_create_subarray(2, sizes, own, at, MPI_ORDER_C, MPI_INT, &part);
    MPI_Type_commit(&part);
    MPI_File_set_view(file, 0, MPI_INT, part, "native", MPI_INFO_NULL);
    const std::vector<int> sent = values_of(rank, rows * 3, 8);
    std::vector<int> got(sent.size(), -1), all(static_cast<std::size_t>(rows * 3 * size), -1);
    MPI_File_write_all(file, sent.data(), rows * 3, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at_all(file, 0, got.data(), rows * 3, MPI_INT, MPI_STATUS_IGNORE);
    expect(got, sent, "columns");
    set_plain(file);
    MPI_File_read_at_all(file, 0, all.data(), rows * 3 * size, MPI_INT, MPI_STATUS_IGNORE);
    for (int i = 0; i < rows * 3 * size; ++i) {
        const int column = i % (3 * size), row = i / (3 * size);
        const int value = values_of(column / 3, rows * 3, 8)[static_cast<std::size_t>(row * 3 + column % 3)];
        CHECK(all[static_cast<std::size_t>(i)] == value);
    }
    MPI_Type_free(&part);
}

// By the pointer that all ranks share, in the order of ranks.
void ordered(MPI_File file) {
    const std::vector<int> sent = values_of(world_rank(), kBlockInts, 9);
    std::vector<int> got(kBlockInts, -1);
    set_plain(file);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    CHECK(MPI_File_write_ordered(file, sent.data(), kBlockInts, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_File_write_ordered_begin(file, sent.data(), kBlockInts, MPI_INT);
    CHECK(MPI_File_write_ordered_end(file, sent.data(), MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_Offset position = 0;
    MPI_File_get_position_shared(file, &position);
    CHECK(position == 2 * kBlockInts * world_size());
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    CHECK(MPI_File_read_ordered(file, got.data(), kBlockInts, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    expect(got, sent, "ordered");
    std::fill(got.begin(), got.end(), -1);
    MPI_File_read_ordered_begin(file, got.data(), kBlockInts, MPI_INT);
    CHECK(MPI_File_read_ordered_end(file, got.data(), MPI_STATUS_IGNORE) == MPI_SUCCESS);
    expect(got, sent, "ordered, split");
}

// Ranks write in any order: each block is one rank's, and all have written.
void check_shared(MPI_File file, int round, const char* what) {
    const int size = world_size();
    std::vector<int> all(static_cast<std::size_t>(size * kBlockInts), -1), firsts;
    MPI_File_read_at_all(file, 0, all.data(), size * kBlockInts, MPI_INT, MPI_STATUS_IGNORE);
    for (int b = 0; b < size; ++b) {
        const auto begin = all.begin() + b * kBlockInts;
        const int writer = *begin % 100'000'000 / 1'000'000;
        expect({begin, begin + kBlockInts}, values_of(writer, kBlockInts, round), what);
        firsts.push_back(writer);
    }
    std::sort(firsts.begin(), firsts.end());
    for (int r = 0; r < size; ++r) CHECK_SAYING(firsts[static_cast<std::size_t>(r)] == r, what);
    MPI_Barrier(MPI_COMM_WORLD);
}

void shared_pointer(MPI_File file) {
    std::vector<int> sent = values_of(world_rank(), kBlockInts, 10), got(kBlockInts, -1);
    set_plain(file);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    CHECK(MPI_File_write_shared(file, sent.data(), kBlockInts, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    check_shared(file, 10, "shared pointer");
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    CHECK(MPI_File_read_shared(file, got.data(), kBlockInts, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    expect(got, values_of(got[0] % 100'000'000 / 1'000'000, kBlockInts, 10), "read by the shared pointer");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    sent = values_of(world_rank(), kBlockInts, 11);
    finished(
        [&](MPI_Request* r) { return MPI_File_iwrite_shared(file, sent.data(), kBlockInts, MPI_INT, r); },
        MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    check_shared(file, 11, "shared pointer, nonblocking");
}

// Checks the size and other facts of a file, and where its pointers are.
void facts(MPI_File file) {
    const int size = world_size();
    MPI_Offset bytes = -1, position = -1;
    set_plain(file);
    CHECK(MPI_File_set_size(file, 1000) == MPI_SUCCESS);
    MPI_File_get_size(file, &bytes);
    CHECK(bytes == 1000);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_File_set_size(file, 5000) == MPI_SUCCESS);
    // Not longer than the file: Open MPI 4.1 has a race where this call must write. A rank that asks for the
    // size after the first rank has written leaves out the call's last broadcast.
    CHECK(MPI_File_preallocate(file, 4000) == MPI_SUCCESS);
    MPI_File_get_size(file, &bytes);
    CHECK(bytes == 5000);
    MPI_File_seek(file, -1, MPI_SEEK_END);
    MPI_File_get_position(file, &position);
    CHECK(position == 5000 / 4 - 1);
    MPI_File_get_byte_offset(file, position, &bytes);
    CHECK(bytes == 4996);
    int amode = 0, atomic = -1, members = 0;
    MPI_File_get_amode(file, &amode);
    CHECK(amode == (MPI_MODE_CREATE | MPI_MODE_RDWR));
    MPI_Group group = MPI_GROUP_NULL;
    MPI_File_get_group(file, &group);
    MPI_Group_size(group, &members);
    CHECK(members == size);
    MPI_Group_free(&group);
    MPI_Aint extent = 0;
    MPI_File_get_type_extent(file, MPI_INT, &extent);
    CHECK(extent == 4);
    MPI_File_get_atomicity(file, &atomic);
    CHECK(atomic == 0);
    MPI_Offset displacement = -1;
    MPI_Datatype etype, filetype;
    char representation[MPI_MAX_DATAREP_STRING] = "";
    MPI_File_get_view(file, &displacement, &etype, &filetype, representation);
    CHECK(displacement == 0 && std::string(representation) == "native");
    MPI_Info info = MPI_INFO_NULL;
    CHECK(MPI_File_get_info(file, &info) == MPI_SUCCESS);
    CHECK(MPI_File_set_info(file, info) == MPI_SUCCESS);
    MPI_Info_free(&info);
}

// The next rank sees at once what one rank writes.
void atomic_writes(MPI_File file) {
    const int rank = world_rank();
    std::vector<int> got(kBlockInts, -1);
    set_plain(file);
    CHECK(MPI_File_set_atomicity(file, 1) == MPI_SUCCESS);
    const std::vector<int> sent = values_of(rank, kBlockInts, 12);
    MPI_File_write_at(file, rank * kBlockInts, sent.data(), kBlockInts, MPI_INT, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    const int other = (rank + 1) % world_size();
    MPI_File_read_at(file, other * kBlockInts, got.data(), kBlockInts, MPI_INT, MPI_STATUS_IGNORE);
    expect(got, values_of(other, kBlockInts, 12), "atomic");
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_File_set_atomicity(file, 0) == MPI_SUCCESS);
}

void close_and_delete(MPI_File file) {
    CHECK(MPI_File_close(&file) == MPI_SUCCESS && file == MPI_FILE_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank() == 0) CHECK(MPI_File_delete(g_name.c_str(), MPI_INFO_NULL) == MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(access(g_name.c_str(), F_OK) != 0);
    const int code = MPI_File_open(MPI_COMM_WORLD, g_name.c_str(), MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    int error_class = MPI_SUCCESS;
    MPI_Error_class(code, &error_class);
    CHECK(error_class == MPI_ERR_NO_SUCH_FILE);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    g_name = path_of(argc, argv, "files");
    MPI_File file = open_file();
    for (int blocks : {1, 40, 9000}) {
        turns(file, blocks);
        holes_in_memory(file, blocks);
    }
    columns(file);
    ordered(file);
    shared_pointer(file);
    facts(file);
    atomic_writes(file);
    close_and_delete(file);
    const int verdict = finish("files");
    MPI_Finalize();
    return verdict;
}
