// SPDX-License-Identifier: BSD-3-Clause
//
// `coco run`: execs a program with libcoco.so preloaded, which finds the program's MPI library itself; and
// what other subcommands have to know of programs, of the preload and of this command. Called by the command
// only, single-threaded. Fails: run() with one line on stderr, and an exit status as shells have them: 127
// not found, 126 cannot be run with libcoco, 2 wrong use; the others nowhere, but see the functions.
#pragma once
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
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
// Why the loader could not preload a file of this name; empty if it could. It takes blanks and colons for the
// ends of names.
std::string unfit_to_preload(const std::string& library);

// The library before all that LD_PRELOAD holds already, with colons between them. Another libcoco is left
// out: two in one process would serve each other's calls.
std::string preload_list(const std::string& library);

struct Preload {
    std::string name, where;  // where: LD_PRELOAD, or the file that names it
    std::string file;         // empty: the loader does not find it, or cannot load it
};
// What the loader was told to preload in this process, and is told for those that this one starts.
std::vector<Preload> preloads();
bool is_libcoco(std::string_view file);
// Whether a library is a sanitizer's runtime that defines malloc, by the name of its file.
bool is_sanitizer(std::string_view file);

// Does not return when all is well.
int run(const std::vector<std::string>& command);

}  // namespace coco::tools
