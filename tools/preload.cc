// SPDX-License-Identifier: BSD-3-Clause
#include "tools/preload.h"

#include <cstdlib>
#include <string_view>

namespace coco::tools {
namespace {

constexpr std::string_view kEndsOfNames = " \t\n:";

bool is_libcoco(std::string_view file) {
    const std::string_view name = file.substr(file.rfind('/') + 1);
    return name == "libcoco.so" || name.starts_with("libcoco.so.");
}

}  // namespace

std::string unfit_to_preload(const std::string& library) {
    if (library.find_first_of(kEndsOfNames) == std::string::npos) return {};
    return library +
           ": a library whose path has a blank or a colon cannot be preloaded; move the installed tree";
}

std::string preload_list(const std::string& library) {
    const char* before = std::getenv("LD_PRELOAD");
    std::string list = library;
    for (std::string_view rest = before != nullptr ? before : ""; !rest.empty();) {
        const std::string_view name = rest.substr(0, rest.find_first_of(kEndsOfNames));
        rest.remove_prefix(name.size() + (name.size() < rest.size() ? 1 : 0));
        if (!name.empty() && !is_libcoco(name)) list.append(":").append(name);
    }
    return list;
}

}  // namespace coco::tools
