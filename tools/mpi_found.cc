// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpi_found.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <string_view>

#include "mpi/library.h"
#include "tools/launch.h"
#include "tools/program_file.h"

namespace coco::tools {
namespace {

bool is_mpi_name(std::string_view file) {
    return file.starts_with("libmpi.so") || file.starts_with("libmpich.so") ||
           file.starts_with("libmpi_abi.so") || file.starts_with("libmpi_cray.so") ||
           file.starts_with("libmpi_gnu") || file.starts_with("libmpi_intel");
}

// In the child: what is to be told of a library that is loaded.
std::string describe(void* handle) {
    link_map* map = nullptr;
    if (dlsym(handle, "PMPI_Alltoall") == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return {};
    std::string line = map->l_name;
    const mpi::Family* family = mpi::family_of(map->l_name, handle);
    if (family == nullptr) return line + ": of no family that libcoco knows; calls are left to it";
    line += std::string(": family ") + family->name + ", as " +
            (family->marker != nullptr ? std::string("it defines ") + family->marker
                                       : "MPI_Abi_get_version says");
    mpi::Library library{};
    library.Get_library_version =
        reinterpret_cast<decltype(library.Get_library_version)>(dlsym(handle, "PMPI_Get_library_version"));
    if (library.Get_library_version == nullptr) return line;
    return line + "; " + mpi::version_of(library);
}

// The text that `work` makes in a child process.
template <class Work>
std::string of_child(Work work) {
    int ends[2];
    if (pipe(ends) != 0) return {};
    const pid_t child = fork();
    if (child == 0) {
        const std::string text = work();
        const bool whole = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
        _exit(whole ? 0 : 1);
    }
    close(ends[1]);
    std::string text;
    char part[4096];
    for (ssize_t n; child > 0 && (n = read(ends[0], part, sizeof part)) > 0;)
        text.append(part, static_cast<std::size_t>(n));
    close(ends[0]);
    if (child > 0) waitpid(child, nullptr, 0);
    return text;
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

std::string describe_mpi(const std::string& name) {
    return of_child([&] {
        void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
        return handle != nullptr ? describe(handle) : std::string();
    });
}

}  // namespace coco::tools
