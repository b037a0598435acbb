// SPDX-License-Identifier: BSD-3-Clause
//
// Which MPI libraries there are, and of which family each is. Called by the command only. Thread safety:
// none; libraries are opened in child processes. Fails: an empty answer.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace coco::tools {

// The names under which MPI libraries are known, for the loader to look for.
std::vector<std::string> known_mpi_names();
// The libraries that a program is linked with and whose names are those of MPI libraries.
std::vector<std::string> mpi_files_of(const std::string& program);
struct MpiFound {
    std::string file;
    std::string family;   // its name; empty: none that libcoco knows
    std::string why;      // it counts to that family
    std::string version;  // as the library says it, in one line
};
// The MPI library of this name or file; nothing if the loader does not find it or if it is no MPI library.
std::optional<MpiFound> find_mpi(const std::string& name);
// "MPICH 4.0.2"
std::string version_in_brief(const MpiFound& mpi);
// All that is known of it, in one line.
std::string describe(const MpiFound& mpi);

// Which one `coco tune` preloads, as the command is linked with none. asked: a library, by its file or by a
// name for the loader, or the folder that an MPI was installed to; empty: the one of the launcher that
// started this process, else the only one that the loader finds. Returns: the library's file; empty, for the
// reason in `why`.
std::string mpi_to_tune(const std::string& asked, std::string& why);

}  // namespace coco::tools
