// SPDX-License-Identifier: BSD-3-Clause
//
// `coco run`: finds the MPI of a program and execs the program with that flavour's libcoco.so preloaded.
// Called by the command only. Fails: one line on stderr, and an exit status as shells have them: 127 not
// found, 126 cannot be run with libcoco, 2 wrong use.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace coco::tools {

// The flavour's libcoco.so, of the build folder or the installation that this command is in; empty if none.
std::string library_of(const std::string& flavour);
// Does not return when all is well. `flavour` is "mpich", "openmpi" or empty: find out.
int run(std::string flavour, const std::vector<std::string>& command);

}  // namespace coco::tools
