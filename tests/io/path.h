// SPDX-License-Identifier: BSD-3-Clause
//
// A file's name that is the same on all ranks of a job and no other job's. Called by every rank once, after
// MPI_Init.
#pragma once
#include <mpi.h>
#include <unistd.h>

#include <string>

namespace test {

// argv[1]: the folder.
inline std::string path_of(int argc, char** argv, const char* name) {
    int pid = static_cast<int>(getpid());
    MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return std::string(argc > 1 ? argv[1] : ".") + "/coco-" + name + "-" + std::to_string(pid);
}

}  // namespace test
