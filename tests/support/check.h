// SPDX-License-Identifier: BSD-3-Clause
//
// The verdict of an MPI test program: checks that count and print, and one exit status that all ranks share.
// Every rank calls finish() last, before MPI_Finalize. Checks may be made by any thread, once world_rank()
// was asked.
#pragma once
#include <mpi.h>

#include <atomic>
#include <cstdio>

namespace test {

inline std::atomic<int> failures = 0;

// Of MPI_COMM_WORLD. Remembered, as tests ask for each byte. Requires: MPI is initialised.
inline int world_rank() {
    static const int rank = [] {
        int asked = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &asked);
        return asked;
    }();
    return rank;
}

inline int world_size() {
    static const int size = [] {
        int asked = 0;
        MPI_Comm_size(MPI_COMM_WORLD, &asked);
        return asked;
    }();
    return size;
}

inline void fail(const char* file, int line, const char* what) {
    if (++failures <= 20) std::fprintf(stderr, "rank %d: %s:%d: FAILED %s\n", world_rank(), file, line, what);
}

// Agrees over all ranks. Returns: the exit status.
inline int finish(const char* name) {
    int own = failures, all = 0;
    MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (world_rank() == 0) std::printf("%s: %d failures on %d ranks\n", name, all, world_size());
    std::fflush(stdout);
    return all == 0 ? 0 : 1;
}

}  // namespace test

#define CHECK(condition) ((condition) ? (void)0 : ::test::fail(__FILE__, __LINE__, #condition))
#define CHECK_SAYING(condition, text) ((condition) ? (void)0 : ::test::fail(__FILE__, __LINE__, text))
