// SPDX-License-Identifier: BSD-3-Clause
//
// The collectives as a table, in two editions: as a program calls them (taken by libcoco when it is there)
// and the MPI library's own, asked from the library itself. Without libcoco both are the same functions.
#pragma once
#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

namespace test {

#if MPI_VERSION >= 4
#define TEST_LARGE_COUNTS(X) \
    X(Alltoall_c)            \
    X(Alltoallv_c)           \
    X(Alltoallw_c)           \
    X(Allgather_c)           \
    X(Allgatherv_c)          \
    X(Bcast_c)               \
    X(Neighbor_alltoall_c)   \
    X(Neighbor_alltoallv_c) X(Neighbor_alltoallw_c) X(Neighbor_allgather_c) X(Neighbor_allgatherv_c)
#else
#define TEST_LARGE_COUNTS(X)
#endif
#define TEST_COLLECTIVES(X) \
    X(Alltoall)             \
    X(Alltoallv)            \
    X(Alltoallw)            \
    X(Allgather)            \
    X(Allgatherv)           \
    X(Bcast)                \
    X(Neighbor_alltoall)    \
    X(Neighbor_alltoallv)   \
    X(Neighbor_alltoallw) X(Neighbor_allgather) X(Neighbor_allgatherv) TEST_LARGE_COUNTS(X)

struct Functions {
#define TEST_MEMBER(name) decltype(&::MPI_##name) name;
    TEST_COLLECTIVES(TEST_MEMBER)
#undef TEST_MEMBER
};

inline Functions called_functions() {
    Functions f{};
#define TEST_CALLED(name) f.name = &::MPI_##name;
    TEST_COLLECTIVES(TEST_CALLED)
#undef TEST_CALLED
    return f;
}

inline void* mpi_library() {
    if (void* handle = dlopen(MPI_LIBRARY_FILE, RTLD_NOW | RTLD_NOLOAD)) return handle;
    std::fprintf(stderr, "no MPI library is loaded\n");
    std::abort();
}

inline Functions library_functions() {
    void* library = mpi_library();
    Functions f{};
#define TEST_OWN(name) f.name = reinterpret_cast<decltype(f.name)>(dlsym(library, "PMPI_" #name));
    TEST_COLLECTIVES(TEST_OWN)
#undef TEST_OWN
    return f;
}

}  // namespace test
