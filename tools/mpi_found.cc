// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpi_found.h"

#include <dlfcn.h>
#include <link.h>

#include <set>
#include <sstream>
#include <string_view>

#include "mpi/library.h"
#include "tools/child.h"
#include "tools/launch.h"
#include "tools/program_file.h"

namespace coco::tools {
namespace {

bool is_mpi_name(std::string_view file) {
    return file.starts_with("libmpi.so") || file.starts_with("libmpich.so") ||
           file.starts_with("libmpi_abi.so") || file.starts_with("libmpi_cray.so") ||
           file.starts_with("libmpi_gnu") || file.starts_with("libmpi_intel");
}

// In the child: what is to be told of a library that is loaded, a line for each member of MpiFound.
std::string lines_of(void* handle) {
    link_map* map = nullptr;
    if (dlsym(handle, "PMPI_Alltoall") == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return {};
    const std::string file = std::string(map->l_name) + "\n";
    const mpi::Family* family = mpi::family_of(map->l_name, handle);
    if (family == nullptr) return file;
    const std::string why =
        family->marker != nullptr ? std::string("it defines ") + family->marker : "MPI_Abi_get_version says";
    mpi::Library library{};
    library.Get_library_version =
        reinterpret_cast<decltype(library.Get_library_version)>(dlsym(handle, "PMPI_Get_library_version"));
    const bool tells = library.Get_library_version != nullptr;
    return file + family->name + "\n" + why + "\n" + (tells ? mpi::version_of(library) : "") + "\n";
}

}  // namespace

std::vector<std::string> known_mpi_names() {
    std::set<std::string> names;
    for (const mpi::Family& family : mpi::families())
        names.insert(family.library_names.begin(), family.library_names.end());
    return {names.begin(), names.end()};
}

std::vector<std::string> mpi_files_of(const std::string& program) {
    std::string why_unfit;
    std::vector<std::string> files;
    for (const std::string& file : all_needed(find_binary(find_program(program), &why_unfit)))
        if (is_mpi_name(file.substr(file.rfind('/') + 1))) files.push_back(file);
    return files;
}

std::optional<MpiFound> find_mpi(const std::string& name) {
    std::istringstream lines(text_of_child([&] {
        void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
        return handle != nullptr ? lines_of(handle) : std::string();
    }));
    MpiFound found;
    if (!std::getline(lines, found.file)) return std::nullopt;
    std::getline(lines, found.family);
    std::getline(lines, found.why);
    std::getline(lines, found.version);
    return found;
}

std::string version_in_brief(const MpiFound& mpi) {
    std::string version = mpi.version.substr(0, mpi.version.find(','));
    if (const std::size_t at = version.find("Version:"); at != std::string::npos)
        version.erase(at, std::string_view("Version:").size() + 1);
    return version.empty() ? mpi.family : version;
}

std::string describe(const MpiFound& mpi) {
    if (mpi.family.empty()) return mpi.file + ": of no family that libcoco knows; calls are left to it";
    return version_in_brief(mpi) + ", " + mpi.file + "; family " + mpi.family + ", as " + mpi.why;
}

}  // namespace coco::tools
