// SPDX-License-Identifier: BSD-3-Clause
//
// Which MPI libraries there are, and of which family each is: for `coco info`. Called by the command only.
#pragma once
#include <string>
#include <vector>

namespace coco::tools {

// The names under which MPI libraries are known, for the loader to look for.
std::vector<std::string> known_mpi_names();
// The libraries that a program is linked with and whose names are those of MPI libraries.
std::vector<std::string> mpi_files_of(const std::string& program);
// File, family, why it counts to that family, and version of an MPI library, in one line; empty if the loader
// does not find it or if it is no MPI library. It is loaded in a child process.
std::string describe_mpi(const std::string& name);

}  // namespace coco::tools
