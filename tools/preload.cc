// SPDX-License-Identifier: BSD-3-Clause
#include "tools/preload.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace coco::tools {
namespace {

constexpr std::string_view kEndsOfNames = " \t\n:";

std::vector<std::string> names_in_list(std::string_view list) {
    std::vector<std::string> names;
    while (!list.empty()) {
        const std::string_view name = list.substr(0, list.find_first_of(kEndsOfNames));
        list.remove_prefix(std::min(list.size(), name.size() + 1));
        if (!name.empty()) names.emplace_back(name);
    }
    return names;
}

std::string file_of_loaded(const std::string& name) {
    void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    link_map* map = nullptr;
    return handle != nullptr && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
}

const char* list_before() {
    const char* list = std::getenv("LD_PRELOAD");
    return list != nullptr ? list : "";
}

}  // namespace

std::string unfit_to_preload(const std::string& library) {
    if (library.find_first_of(kEndsOfNames) == std::string::npos) return {};
    return library +
           ": a library whose path has a blank or a colon cannot be preloaded; move the installed tree";
}

std::string preload_list(const std::string& library) {
    std::string list = library;
    for (const std::string& name : names_in_list(list_before()))
        if (!is_libcoco(name)) list.append(":").append(name);
    return list;
}

std::vector<Preload> preloads() {
    constexpr const char* kFile = "/etc/ld.so.preload";
    std::vector<Preload> all;
    for (const std::string& name : names_in_list(list_before()))
        all.push_back({name, "LD_PRELOAD", file_of_loaded(name)});
    std::ifstream in(kFile);
    for (std::string line; std::getline(in, line);)
        for (const std::string& name : names_in_list(line))
            all.push_back({name, kFile, file_of_loaded(name)});
    return all;
}

bool is_libcoco(std::string_view file) {
    const std::string_view name = file.substr(file.rfind('/') + 1);
    return name == "libcoco.so" || name.starts_with("libcoco.so.");
}

bool is_sanitizer(std::string_view file) {
    const std::string_view name = file.substr(file.rfind('/') + 1);
    for (const char* sanitizer :
         {"libasan.", "libhwasan.", "libtsan.", "libclang_rt.asan", "libclang_rt.hwasan", "libclang_rt.tsan"})
        if (name.starts_with(sanitizer)) return true;
    return false;
}

}  // namespace coco::tools
