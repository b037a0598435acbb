// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the loader takes libcoco.so, tried with this command itself, and what else it is told to preload.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/env.h"
#include "os/symbols.h"
#include "tools/child.h"
#include "tools/doctor_checks.h"
#include "tools/doctor_preload.h"
#include "tools/launch.h"
#include "tools/program_file.h"

namespace coco::tools {
namespace fs = std::filesystem;
namespace {

constexpr unsigned kPatience_s = 20;

// What a process with preloaded libraries has told.
struct Preloaded {
    bool is_there = false;
    std::string file, version;
    bool shares = false;  // whether malloc gave memory of the shared heap
    // In one line.
    std::string complaint_of_loader, complaint_of_libcoco;
};

// Without its beginning, which has the number of a process.
std::string after(const std::string& line, std::string_view mark) {
    const std::size_t at = line.find(mark);
    return at == std::string::npos ? line : line.substr(at + mark.size());
}

// What the loader, libcoco and a sanitizer have to say is told once.
void read_complaint(const std::string& line, Preloaded& seen) {
    std::string& complaint = line.starts_with("coco[") ? seen.complaint_of_libcoco : seen.complaint_of_loader;
    if (!complaint.empty()) return;
    complaint = line.starts_with("coco[") ? after(line, "info: ")
                : line.starts_with("==")  ? after(line.substr(2), "==")
                                          : after(line, "ERROR: ");
}

void read_told(const std::string& line, Preloaded& seen) {
    const nlohmann::json told = nlohmann::json::parse(line, nullptr, false);
    if (!told.is_object()) return;
    seen.file = told.value("file", "");
    seen.version = told.value("version", "");
    seen.shares = told.value("shares", false);
    seen.is_there = !seen.version.empty();
}

// Starts this command with libraries preloaded, as an MPI rank, as only ranks have a shared heap. Its settings are its own.
Preloaded try_preload(const std::string& list) {
    std::vector<Change> changes = {{"LD_PRELOAD", list.c_str()}, {"PMI_RANK", "0"}};
    for (const base::Setting& setting : base::settings()) changes.emplace_back(setting.name, nullptr);
    changes.emplace_back("COCO_LOG", "info");
    Preloaded seen;
    std::error_code ignored;
    const std::string self = fs::read_symlink("/proc/self/exe", ignored);
    std::istringstream lines(output_of({self, "doctor", "--what-is-preloaded"}, changes, kPatience_s));
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with('{'))
            read_told(line, seen);
        else
            read_complaint(line, seen);
    return seen;
}

std::vector<std::string> words_of(const std::string& list) {
    std::vector<std::string> words;
    std::string word;
    for (char c : list + " ") {
        if (c != ' ' && c != ':' && c != '\t' && c != '\n') {
            word += c;
        } else if (!word.empty()) {
            words.push_back(std::move(word));
            word.clear();
        }
    }
    return words;
}

bool is_libcoco(const std::string& file) {
    return fs::path(file).filename().string().starts_with("libcoco.so");
}

bool is_same_file(const std::string& a, const std::string& b) {
    std::error_code ignored;
    return fs::equivalent(a, b, ignored);
}

void check_other_libcoco(const std::string& file, Findings& findings) {
    const std::string ours = library_file();
    if (ours.empty() || is_same_file(file, ours)) return;
    const Preloaded seen = try_preload(file);
    const std::string what = "LD_PRELOAD names another libcoco, " + file;
    const std::string remedy = "take it out of LD_PRELOAD, or use the coco command beside it";
    if (seen.is_there && seen.version == COCO_VERSION)
        findings.note("preloads", what + ", of the same version as this command", remedy);
    else
        findings.problem(
            "preloads",
            what + (seen.is_there ? ", of version " + seen.version : ", which the loader does not take"),
            remedy);
}

// Returns: whether there is something to say of it.
bool check_preload(const Preload& preload, Findings& findings) {
    const auto& [name, where] = preload;
    const std::string file = find_library(name);
    if (file.empty() || !read_elf(file).is_native) {
        findings.note("preloads",
                      where + " names " + name + ", which the loader does not find or cannot load",
                      "take it out of " + where);
        return true;
    }
    if (is_libcoco(file)) {
        check_other_libcoco(file, findings);
        return false;
    }
    const Names names = names_in(file, {"malloc", "MPI_Alltoall", "PMPI_Alltoall"});
    if (is_sanitizer(file))
        findings.problem("preloads", file + " in " + where + " has to come before libcoco",
                         "instead of coco run: LD_PRELOAD=" + file + ":" + library_file());
    else if (names.defined.contains("malloc"))
        findings.note(
            "preloads",
            file + " in " + where +
                " defines malloc: the program's buffers are private, and copied or read through the kernel",
            "take it out of " + where + "; libcoco brings an allocator");
    else if (names.defined.contains("MPI_Alltoall") && !names.defined.contains("PMPI_Alltoall"))
        findings.ok("preloads",
                    file + " in " + where +
                        " defines MPI functions, as tools do: it sees the calls that libcoco hands on");
    else
        return false;
    return true;
}

}  // namespace

bool is_sanitizer(const std::string& file) {
    const std::string name = fs::path(file).filename();
    return std::ranges::any_of(
        std::vector<std::string>{"libasan.", "libhwasan.", "libtsan.", "libclang_rt.asan",
                                 "libclang_rt.hwasan", "libclang_rt.tsan"},
        [&](const std::string& sanitizer) { return name.starts_with(sanitizer); });
}

std::vector<Preload> preloads() {
    std::vector<Preload> all;
    const char* list = std::getenv("LD_PRELOAD");
    for (std::string& name : words_of(list != nullptr ? list : ""))
        all.push_back({std::move(name), "LD_PRELOAD"});
    std::ifstream in("/etc/ld.so.preload");
    for (std::string line; std::getline(in, line);)
        for (std::string& name : words_of(line)) all.push_back({std::move(name), "/etc/ld.so.preload"});
    return all;
}

void check_library(Findings& findings) {
    const std::string file = library_file();
    if (file.empty()) {
        const std::string why = why_no_library();
        const std::size_t end = why.find("; ");
        return findings.problem("library", why.substr(0, end), why.substr(end + 2));
    }
    const char* before = std::getenv("LD_PRELOAD");
    const bool is_only = before == nullptr || *before == '\0';
    const Preloaded seen = try_preload(is_only ? file : file + ":" + before);
    const std::string complaint = seen.complaint_of_loader.empty() ? "" : ": " + seen.complaint_of_loader;
    if (!seen.is_there && !is_only && try_preload(file).is_there)
        return findings.problem("library",
                                file + " works alone, but not with what LD_PRELOAD names" + complaint,
                                "see what is said of preloads");
    if (!seen.is_there)
        return findings.problem(
            "library", "the loader does not preload " + file + complaint,
            "it must be readable on this host, and no security module may put programs into secure mode");
    if (seen.version != COCO_VERSION)
        return findings.problem(
            "library", seen.file + " is of version " + seen.version + ", this command of " COCO_VERSION,
            "install both from one build");
    findings.ok("library", file + " of version " + seen.version + ", which the loader takes");
    const std::string why = seen.complaint_of_libcoco.empty() ? "" : ": " + seen.complaint_of_libcoco;
    if (!seen.shares)
        findings.note("heap", "malloc gives no shared memory in a process with libcoco" + why,
                      "see what is said of preloads, shared memory and limits");
}

void check_other_preloads(Findings& findings) {
    bool any = false;
    for (const Preload& preload : preloads()) any |= check_preload(preload, findings);
    if (!any) findings.ok("preloads", "no other preloaded library is in the way");
}

void tell_what_is_preloaded() {
    nlohmann::json told = {{"file", ""}, {"version", ""}, {"shares", false}};
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
