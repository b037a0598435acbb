// SPDX-License-Identifier: BSD-3-Clause
//
// Which MPI library `coco tune` preloads, as the command is linked with none. Called by tune.cc. Thread
// safety: none; libraries are opened in child processes. Fails: says why in one line.
#pragma once
#include <string>

namespace coco::tools {

// asked: a library, by its file or by a name for the loader, or the folder that an MPI was installed to;
// empty: the one of the launcher that started this process, else the only one that the loader finds. Returns:
// the library's file; empty, for the reason in `why`.
std::string mpi_to_tune(const std::string& asked, std::string& why);

}  // namespace coco::tools
