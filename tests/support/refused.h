// SPDX-License-Identifier: BSD-3-Clause
//
// Wrong calls in tests: what the MPI library says of them.
#pragma once
#include <mpi.h>

namespace test {

// Whether the MPI library refuses a receive buffer that is the send buffer.
#ifdef OPEN_MPI
constexpr bool kRefusesAliases = false;
#else
constexpr bool kRefusesAliases = true;
#endif

// The error class of what a call has returned; MPI_SUCCESS if it returned that.
inline int class_of(int code) {
    int error_class = code;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
    return error_class;
}

}  // namespace test
