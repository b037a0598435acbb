// SPDX-License-Identifier: BSD-3-Clause
//
// `coco run`: execs a program with libcoco.so preloaded, which finds the program's MPI library itself.
// Called by the command only. Fails: one line on stderr, and an exit status as shells have them: 127 not
// found, 126 cannot be run with libcoco, 2 wrong use.
#pragma once
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace coco::tools {

// The first of these paths that there is, seen from the folder of this command: the build folder, or
// PREFIX/bin, wherever that was moved to. Empty if there is none.
std::string beside_this_command(std::initializer_list<std::filesystem::path> paths);
// The file of this command; empty if /proc does not tell.
std::filesystem::path this_command();
// The libcoco.so of the build folder or the installation that this command is in; empty if none.
std::string library_file();
// Why library_file() is empty, and what to do, in one line.
std::string why_no_library();
// The file that execvp would run for a name; empty if there is none.
std::string find_program(const std::string& name);
// The program that the kernel starts for a file: itself, or a script's interpreter. why_unfit: why the loader
// would not take LD_PRELOAD for it; empty if it would.
std::string find_binary(const std::string& program, std::string* why_unfit);
// Whether an MPI launcher started this process, as the environment says.
bool is_launched();
// Does not return when all is well.
int run(const std::vector<std::string>& command);

}  // namespace coco::tools
