// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpi_found.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>

#include "mpi/library.h"
#include "tools/child.h"
#include "tools/launch.h"
#include "tools/program_file.h"
#include "tools/words.h"

namespace coco::tools {
namespace fs = std::filesystem;
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

namespace {

struct Launcher {
    std::string_view family;  // its name (mpi/family.h)
    const char* variable;     // that it sets for each rank
};
constexpr Launcher kLaunchers[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK"}, {"Open MPI", "PMIX_RANK"}, {"MPICH", "HYDI_CONTROL_FD"},
    {"MPICH", "MPI_LOCALNRANKS"},         {"MPICH", "PMI_FD"},       {"MPICH", "PMI_RANK"}};
constexpr std::string_view kStandard = "MPI standard ABI";

// The family of the launcher that started this process; nothing where none did, or where it starts ranks of
// several families.
std::optional<std::string_view> launcher_family() {
    std::optional<std::string_view> family;
    for (const Launcher& launcher : kLaunchers) {
        if (std::getenv(launcher.variable) == nullptr) continue;
        if (family && *family != launcher.family) return std::nullopt;
        family = launcher.family;
    }
    return family;
}

// Those of a folder's libraries that are MPI libraries, each file once.
std::vector<std::string> files_below(const fs::path& prefix) {
    std::vector<std::string> names = known_mpi_names();
    names.insert(names.end(), {"libmpi.so", "libmpich.so"});
    std::vector<fs::path> folders{prefix, prefix / "lib", prefix / "lib64"};
    std::error_code ignored;
    for (fs::directory_iterator at(prefix / "lib", ignored), end; !ignored && at != end;
         at.increment(ignored))
        if (at->path().filename().string().ends_with("-linux-gnu")) folders.push_back(at->path());
    std::vector<std::string> files;
    for (const fs::path& folder : folders)
        for (const std::string& name : names)
            if (fs::exists(folder / name, ignored)) files.push_back(folder / name);
    return files;
}

// Those of these names that are MPI libraries which libcoco serves, each once.
std::vector<MpiFound> found_among(const std::vector<std::string>& names) {
    std::vector<MpiFound> found;
    std::vector<fs::path> seen;
    for (const std::string& name : names) {
        std::optional<MpiFound> mpi = find_mpi(name);
        if (!mpi || mpi->family.empty()) continue;
        std::error_code ignored;
        const fs::path real = fs::weakly_canonical(mpi->file, ignored);
        if (std::ranges::find(seen, real) != seen.end()) continue;
        seen.push_back(real);
        found.push_back(std::move(*mpi));
    }
    return found;
}

std::string list_of(const std::vector<MpiFound>& found) {
    std::vector<std::string> words;
    for (const MpiFound& mpi : found) words.push_back(filled({mpi.file, mpi.family}, "{} ({})"));
    return joined(words);
}

// What the user asked for.
std::string asked_file(const std::string& asked, std::string& why) {
    std::error_code ignored;
    const bool is_folder = fs::is_directory(asked, ignored);
    const std::vector<MpiFound> found =
        found_among(is_folder ? files_below(asked) : std::vector<std::string>{asked});
    if (!found.empty()) return found.front().file;
    why = "--mpi " + asked +
          (is_folder ? ": there is no MPI library that libcoco serves in it or in its lib"
                     : ": the loader finds no such library, or it is no MPI library that libcoco serves");
    return {};
}

}  // namespace

std::string mpi_to_tune(const std::string& asked, std::string& why) {
    if (!asked.empty()) return asked_file(asked, why);
    const std::optional<std::string_view> family = launcher_family();
    const std::vector<MpiFound> all = found_among(known_mpi_names());
    std::vector<MpiFound> fitting;
    for (const MpiFound& mpi : all)
        if (!family || mpi.family == *family) fitting.push_back(mpi);
    // A library of the standard ABI may belong to either launcher.
    if (fitting.empty())
        for (const MpiFound& mpi : all)
            if (mpi.family == kStandard) fitting.push_back(mpi);
    if (fitting.size() == 1) return fitting.front().file;
    const std::string launcher = family ? " for the launcher of " + std::string(*family) : "";
    if (all.empty())
        why = "the loader finds no MPI library: name it, or the folder that MPI was installed to, with --mpi";
    else if (fitting.empty())
        why = filled({launcher, list_of(all)},
                     "the loader finds no MPI library{}, only {}: name one with --mpi");
    else
        why = filled({launcher, list_of(fitting)},
                     "the loader finds several MPI libraries{}, {}: name one with --mpi");
    return {};
}

}  // namespace coco::tools
