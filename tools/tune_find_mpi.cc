// SPDX-License-Identifier: BSD-3-Clause
#include "tools/tune_find_mpi.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "mpi/family.h"
#include "tools/mpi_found.h"

namespace coco::tools {
namespace fs = std::filesystem;
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
    std::string list;
    for (const MpiFound& mpi : found)
        list.append(list.empty() ? "" : ", ").append(mpi.file).append(" (" + mpi.family + ")");
    return list;
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
    const std::string launcher = family ? "for the launcher of " + std::string(*family) : "";
    if (all.empty())
        why = "the loader finds no MPI library: name it, or the folder that MPI was installed to, with --mpi";
    else if (fitting.empty())
        why = "the loader finds no MPI library " + launcher + ", only " + list_of(all) +
              ": name one with --mpi";
    else
        why = "the loader finds several MPI libraries" + (family ? " " + launcher : launcher) + ", " +
              list_of(fitting) + ": name one with --mpi";
    return {};
}

}  // namespace coco::tools
