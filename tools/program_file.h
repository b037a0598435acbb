// SPDX-License-Identifier: BSD-3-Clause
//
// Facts that `coco run` must know about a program file before it starts it: is it ours to help, and which MPI
// does it load? Reads ELF headers; runs nothing. Single-threaded use.
#pragma once
#include <set>
#include <string>
#include <vector>

namespace coco::tools {

struct Elf {
    bool is_elf = false;                // false: not an ELF file (a script, or data)
    bool is_native = false;             // 64-bit x86-64, or whatever this command was built for
    bool is_dynamic = false;            // has an interpreter: the loader sees LD_PRELOAD
    std::string interpreter;            // the loader that it asks for
    std::vector<std::string> needed;    // DT_NEEDED
    std::vector<std::string> run_path;  // DT_RUNPATH or DT_RPATH, $ORIGIN filled in
};
// Reads a file. Returns: is_elf = false if it cannot be read or is none; a damaged one has nothing needed.
Elf read_elf(const std::string& path);

// Which of the names that are asked for a file defines for others, and which it wants from others.
struct Names {
    std::set<std::string> defined, wanted;
};
Names names_in(const std::string& path, const std::set<std::string>& asked);

// Where the loader would find a library for a file with these run paths; empty if nowhere.
std::string find_library(const std::string& name, const std::vector<std::string>& run_path = {});

// The files of all libraries that the loader would bring in for the file, near ones first; the names of those
// that it would not find.
std::vector<std::string> all_needed(const std::string& path);

}  // namespace coco::tools
