// SPDX-License-Identifier: BSD-3-Clause
#include "tools/launch.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "os/process.h"
#include "settings/settings.h"
#include "tools/child.h"
#include "tools/program_file.h"

namespace coco::tools {
namespace fs = std::filesystem;
namespace {

constexpr int kWrongUse = 2, kCannotRun = 126, kNotFound = 127;

int fail(int status, const std::string& line) {
    std::fprintf(stderr, "coco: error: %s\n", line.c_str());
    return status;
}

}  // namespace

// The file that execvp would run; empty if there is none. One that is no executable counts if no other is
// found.
std::string find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) return fs::exists(name) ? name : std::string();
    const char* path = std::getenv("PATH");
    std::istringstream folders(path != nullptr ? path : "/bin:/usr/bin");
    std::string second_best;
    for (std::string folder; std::getline(folders, folder, ':');) {
        std::string file = (folder.empty() ? "." : folder) + "/" + name;
        std::error_code ignored;
        if (!fs::is_regular_file(file, ignored)) continue;
        if (access(file.c_str(), X_OK) == 0) return file;
        second_best = file;
    }
    return second_best;
}

namespace {

// The program that the kernel starts for a script: the word after #!, past env.
std::string interpreter_of(const std::string& path) {
    std::ifstream in(path);
    std::string line, program, argument;
    if (!std::getline(in, line) || !line.starts_with("#!")) return {};
    std::istringstream words(line.substr(2));
    words >> program >> argument;
    if (fs::path(program).filename() == "env" && argument == "-S") words >> argument;
    return fs::path(program).filename() == "env" ? find_program(argument) : program;
}

constexpr const char* kThisCommand = "/proc/self/exe";

// Why the loader would not take LD_PRELOAD for this file; empty if it would.
std::string unfit(const std::string& path) {
    struct stat status;
    if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return "is not a program";
    if (access(path.c_str(), X_OK) != 0) return "is not executable";
    if ((status.st_mode & (S_ISUID | S_ISGID)) != 0)
        return "is setuid or setgid: the loader would ignore the preload; link the program with -lcoco";
    if (getxattr(path.c_str(), "security.capability", nullptr, 0) > 0)
        return "has file capabilities: the loader would ignore the preload; link the program with -lcoco";
    Elf elf = read_elf(path);
    if (!elf.is_elf) return {};
    if (!elf.is_native) return "is for another architecture than libcoco";
    if (elf.interpreter.empty())
        return "is static: nothing can be preloaded; link it with the shared MPI library";
    return {};
}

// Nothing if the settings are right; below a launcher MPI_Init checks them, and tells once for all ranks.
std::optional<std::string> wrong_setting() {
    if (settings::is_switched_off() || is_launched()) return std::nullopt;
    settings::Settings settings;
    return settings::read(settings);
}

}  // namespace

fs::path this_command() {
    std::error_code ignored;
    return fs::read_symlink(kThisCommand, ignored);
}

bool is_launched() {
    return os::launched_rank() >= 0 || std::getenv("PMI_FD") != nullptr ||
           std::getenv("HYDI_CONTROL_FD") != nullptr;
}

std::string find_binary(const std::string& program, std::string* why_unfit) {
    std::string binary = program;
    *why_unfit = unfit(program);
    for (int depth = 0; depth < 4 && why_unfit->empty() && !read_elf(binary).is_elf; ++depth) {
        std::string next = interpreter_of(binary);
        if (next.empty()) break;
        binary = next;
        *why_unfit = unfit(binary);
    }
    return binary;
}

std::string beside_this_command(std::initializer_list<std::filesystem::path> paths) {
    const fs::path here = this_command().parent_path();
    if (here.empty()) return {};  // not what lies in the folder where the user happens to be
    for (const fs::path& path : paths)
        if (const fs::path file = here / path; fs::exists(file))
            return fs::weakly_canonical(file.parent_path()) / file.filename();
    return {};
}

std::string library_file() {
    return beside_this_command({"libcoco.so", fs::path("..") / COCO_LIBDIR / "coco/libcoco.so"});
}

std::string why_no_library() {
    if (this_command().empty())
        return std::string("this command cannot find out where it lies, as ") + kThisCommand +
               " cannot be read; mount /proc";
    return "there is no libcoco.so beside this command; build it with scripts/build, or install both";
}

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

int run(const std::vector<std::string>& command) {
    const std::string& name = command.front();
    std::string program = find_program(name), why;
    if (program.empty()) return fail(kNotFound, name + ": not found");
    std::string binary = find_binary(program, &why);
    if (!why.empty()) return fail(kCannotRun, binary + " " + why);
    if (auto wrong = wrong_setting()) return fail(kWrongUse, *wrong);
    std::string library = library_file();
    if (library.empty()) return fail(kCannotRun, why_no_library());
    if (why = unfit_to_preload(library); !why.empty()) return fail(kCannotRun, why);
    setenv("LD_PRELOAD", preload_list(library).c_str(), 1);
    execvp(program.c_str(), as_arguments(command).data());
    return fail(kCannotRun, program + ": " + std::strerror(errno));
}

}  // namespace coco::tools
