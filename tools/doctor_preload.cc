// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the loader takes libcoco.so, which this command tries with itself, and what else is preloaded.
#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/env.h"
#include "tools/child.h"
#include "tools/doctor_check.h"
#include "tools/launch.h"
#include "tools/program_file.h"

namespace coco::tools {
namespace fs = std::filesystem;
namespace {

std::string after(const std::string& line, std::string_view mark) {
    const std::size_t at = line.find(mark);
    return at == std::string::npos ? line : line.substr(at + mark.size());
}

// A complaint begins with a process number, which differs between ranks and is left out. The first one
// counts.
void read_complaint(const std::string& line, Preloaded& seen) {
    if (line.empty()) return;
    if (line.starts_with("coco[")) {
        if (seen.complaint_of_libcoco.empty()) seen.complaint_of_libcoco = ": " + after(line, "info: ");
    } else if (seen.complaint_of_loader.empty()) {
        const bool is_sanitizers = line.starts_with("==");
        seen.complaint_of_loader =
            ": " + (is_sanitizers ? after(line.substr(2), "==") : after(line, "ERROR: "));
    }
}

// Starts this command with libraries preloaded and default settings, as a rank: only ranks have a shared
// heap.
Preloaded try_preload(const std::string& list) {
    constexpr unsigned kPatience_s = 20;
    std::vector<Change> changes = {{"LD_PRELOAD", list.c_str()}, {"PMI_RANK", "0"}};
    for (const base::Setting& setting : base::settings()) changes.emplace_back(setting.name, nullptr);
    changes.emplace_back("COCO_LOG", "info");
    Preloaded seen;
    std::istringstream lines(
        output_of({this_command(), "doctor", "--what-is-preloaded"}, changes, kPatience_s));
    for (std::string line; std::getline(lines, line);) {
        const nlohmann::json told = nlohmann::json::parse(line, nullptr, false);
        if (!line.starts_with('{')) {
            read_complaint(line, seen);
        } else if (told.is_object()) {
            seen.file = told.value("file", "");
            seen.version = told.value("version", "");
            seen.shares = told.value("shares", false);
        }
    }
    return seen;
}

Answers answers_of_another_libcoco(const std::string& file) {
    std::error_code ignored;
    const std::string ours = library_file(),
                      advice = "take it out of LD_PRELOAD, or use the coco command beside it";
    if (ours.empty() || fs::equivalent(file, ours, ignored)) return {};
    const std::string version = try_preload(file).version;
    if (version == COCO_VERSION)
        return note({file, advice},
                    "LD_PRELOAD names another libcoco, {}, of the same version as this command -> {}");
    const std::string what = version.empty() ? "which the loader does not take" : "of version " + version;
    return problem({file, what, advice}, "LD_PRELOAD names another libcoco, {}, {} -> {}");
}

Answers answers_of_another_library(const std::string& file, const std::string& where) {
    const Names names = names_in(file, {"malloc", "MPI_Alltoall", "PMPI_Alltoall"});
    if (is_sanitizer(file))
        return problem({file, where, file, library_file()},
                       "{} in {} has to come before libcoco -> instead of coco run: LD_PRELOAD={}:{}");
    if (names.defined.contains("malloc"))
        return note({file, where, where},
                    "{} in {} defines malloc: the program's buffers are private, and copied or read through "
                    "the kernel -> take it out of {}; libcoco brings an allocator");
    if (names.defined.contains("MPI_Alltoall") && !names.defined.contains("PMPI_Alltoall"))
        return ok({file, where},
                  "{} in {} defines MPI functions, as tools do: it sees the calls that libcoco hands on");
    return {};
}

Answers ask_library(Patient& patient) {
    const std::string file = library_file();
    if (file.empty()) return problem_in_line(why_no_library());
    const char* before = std::getenv("LD_PRELOAD");
    const bool is_only = before == nullptr || *before == '\0';
    const Preloaded seen = try_preload(is_only ? file : file + ":" + before);
    if (seen.version.empty() && !is_only && !try_preload(file).version.empty())
        return problem(
            {file, seen.complaint_of_loader},
            "{} works alone, but not with what LD_PRELOAD names{} -> see what is said of preloads");
    if (seen.version.empty())
        return problem({file, seen.complaint_of_loader},
                       "the loader does not preload {}{} -> it must be readable on this host, and no "
                       "security module may put programs into secure mode");
    if (seen.version != COCO_VERSION)
        return problem({seen.file, seen.version, COCO_VERSION},
                       "{} is of version {}, this command of {} -> install both from one build");
    patient.preloaded = seen;
    return ok({file, seen.version}, "{} of version {}, which the loader takes");
}

Answers ask_heap(Patient& patient) {
    if (patient.preloaded.version.empty() || patient.preloaded.shares) return {};
    return note({patient.preloaded.complaint_of_libcoco},
                "malloc gives no shared memory in a process with libcoco{} -> see what is said of preloads, "
                "shared memory and limits");
}

Answers ask_preloads(Patient&) {
    Answers answers;
    bool is_in_the_way = false;
    for (const auto& [name, where, file] : preloads()) {
        if (is_libcoco(file)) {
            answers += answers_of_another_libcoco(file);
            continue;
        }
        const Answers found =
            file.empty()
                ? note({where, name, where},
                       "{} names {}, which the loader does not find or cannot load -> take it out of {}")
                : answers_of_another_library(file, where);
        is_in_the_way |= !found.empty();
        answers += found;
    }
    if (!is_in_the_way) answers += ok("no other preloaded library is in the way");
    return answers;
}

constexpr OwnCheck kPreloadChecks[] = {
    {"library", ask_library},
    {"heap", ask_heap},
    {"preloads", ask_preloads},
};

}  // namespace

OwnChecks preload_checks() { return kPreloadChecks; }

void tell_what_is_preloaded() {
    nlohmann::json told = nlohmann::json::object();
    auto* const version = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "coco_version"));
    auto* const is_shared = reinterpret_cast<int (*)(const void*)>(dlsym(RTLD_DEFAULT, "coco_is_shared"));
    if (version != nullptr && is_shared != nullptr) {
        Dl_info where{};
        dladdr(reinterpret_cast<const void*>(version), &where);
        void* block = std::malloc(100);
        told = {{"file", where.dli_fname}, {"version", version()}, {"shares", is_shared(block) != 0}};
        std::free(block);
    }
    std::cout << told.dump() << std::endl;
}

}  // namespace coco::tools
