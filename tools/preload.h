// SPDX-License-Identifier: BSD-3-Clause
//
// What LD_PRELOAD must hold so that a program runs with the libcoco of this command: for `coco run` and `coco
// env`. Called by the command only, single-threaded. Fails: nowhere, but see the functions.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace coco::tools {

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

}  // namespace coco::tools
