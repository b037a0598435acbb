// SPDX-License-Identifier: BSD-3-Clause
//
// Facts about a program file before it runs: is it ours to help, and which libraries does it load? Called by
// the command only. Reads ELF headers, and asks the loader, in a child process. Single-threaded use. Fails:
// an empty answer.
#pragma once
#include <set>
#include <string>
#include <vector>

namespace coco::tools {

struct Elf {
    bool is_elf = false;      // false: not an ELF file (a script, or data)
    bool is_native = false;   // 64-bit x86-64, or whatever this command was built for
    std::string interpreter;  // the loader that it asks for, which sees LD_PRELOAD; empty: it is static
};
// Reads a file. Returns: is_elf = false if it cannot be read or is none.
Elf read_elf(const std::string& path);

// Which of the names that are asked for a file defines for others, and which it wants from others.
struct Names {
    std::set<std::string> defined, wanted;
};
Names names_in(const std::string& path, const std::set<std::string>& asked);

// The files of all libraries that the loader would bring in for the program, near ones first; the names of
// those that it would not find.
std::vector<std::string> all_needed(const std::string& path);

}  // namespace coco::tools
