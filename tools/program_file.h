// SPDX-License-Identifier: BSD-3-Clause
//
// Facts that `coco run` must know about a program file before it starts it: is it ours to help, and which MPI does
// it load? Reads ELF headers; runs nothing. Single-threaded use.
#pragma once
#include <string>
#include <vector>

namespace coco::tools {

struct Elf {
    bool is_elf = false;                // false: not an ELF file (a script, or data)
    bool is_native = false;             // 64-bit x86-64, or whatever this command was built for
    bool is_dynamic = false;            // has an interpreter: the loader sees LD_PRELOAD
    std::vector<std::string> needed;    // DT_NEEDED
    std::vector<std::string> run_path;  // DT_RUNPATH or DT_RPATH, $ORIGIN filled in
};
// Reads a file. Returns: is_elf = false if it cannot be read or is none; a damaged one has nothing needed.
Elf read_elf(const std::string& path);

// The files of all libraries that the loader would bring in for the file, near ones first; the names of those
// that it would not find.
std::vector<std::string> all_needed(const std::string& path);

}  // namespace coco::tools
