// SPDX-License-Identifier: BSD-3-Clause
//
// What is left of libcoco when MPI has ended: the heaps of other ranks are mapped no more, so that the memory
// of each is given back when its own process ends, by all processes at once, and not by the last one; this
// rank's heap goes on. Usage: finalize_test [session]: with a session that is still open, whose calls may go
// on, all heaps stay.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "footprint.h"
#include "support/check.h"

namespace {

constexpr std::size_t kBlocks = 2000, kBlockBytes = 3000;

std::vector<std::vector<char>> fill_blocks() {
    std::vector<std::vector<char>> blocks;
    for (std::size_t i = 0; i < kBlocks; ++i) blocks.emplace_back(kBlockBytes, static_cast<char>(i));
    return blocks;
}

bool are_whole(const std::vector<std::vector<char>>& blocks) {
    for (std::size_t i = 0; i < blocks.size(); ++i)
        for (char byte : blocks[i])
            if (byte != static_cast<char>(i)) return false;
    return true;
}

bool alltoall_is_right() {
    const auto ranks = static_cast<std::size_t>(test::world_size());
    std::vector<int> out(ranks), in(ranks);
    for (std::size_t r = 0; r < ranks; ++r) out[r] = 100 * test::world_rank() + static_cast<int>(r);
    MPI_Alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, MPI_COMM_WORLD);
    for (std::size_t r = 0; r < ranks; ++r)
        if (in[r] != 100 * static_cast<int>(r) + test::world_rank()) return false;
    return true;
}

// MPI_Finalize calls it, before anything else; collectives are allowed there, and are the MPI library's.
int g_called = 0;
int when_mpi_ends(MPI_Comm, int, void*, void*) {
    ++g_called;
    CHECK(alltoall_is_right());
    return MPI_SUCCESS;
}

#if MPI_VERSION >= 4
MPI_Session g_session;
bool open_session() { return MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &g_session) == MPI_SUCCESS; }
// Then MPI ends.
void close_session() { MPI_Session_finalize(&g_session); }
#else
bool open_session() { std::exit(77); }  // skipped
void close_session() {}
#endif

}  // namespace

int main(int count, char** arguments) {
    const bool has_session = count > 1 && std::string_view(arguments[1]) == "session";
    const bool is_opened = has_session && open_session();
    MPI_Init(&count, &arguments);
    const int ranks = test::world_size(), rank = test::world_rank();
    int keyval = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, when_mpi_ends, &keyval, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
    const auto blocks = fill_blocks();
    CHECK(is_opened == has_session);
    for (int i = 0; i < 100; ++i) CHECK(alltoall_is_right());
    const int segments = test::Footprint{}.segments;
    CHECK(segments == ranks);
    const int failed = test::finish("finalize_test");
    test::failures = 0;
    MPI_Finalize();

    if (!has_session) CHECK(g_called == 1);  // MPICH waits for the session's end with that
    CHECK(test::Footprint{}.segments == (has_session ? ranks : 1));
    CHECK(are_whole(blocks));
    const auto more = fill_blocks();
    CHECK(are_whole(more));
    if (is_opened) close_session();
    if (test::failures != 0) std::fprintf(stderr, "rank %d: failed after MPI_Finalize\n", rank);
    return failed != 0 || test::failures != 0;
}
