// SPDX-License-Identifier: BSD-3-Clause
//
// What the loader is told to preload, for checks of `coco doctor`. Called by them alone. Thread safety: any thread. Fails: no.
#pragma once
#include <string>
#include <vector>

namespace coco::tools {

struct Preload {
    std::string name;
    std::string where;  // LD_PRELOAD or the file that names it
};
std::vector<Preload> preloads();
// Whether a library, by the name of its file, is the runtime of a sanitizer that defines malloc.
bool is_sanitizer(const std::string& file);

}  // namespace coco::tools
