// SPDX-License-Identifier: BSD-3-Clause
//
// The COCO_ variables of this process, and where learned rules lie.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/env.h"
#include "settings/learned_file.h"
#include "settings/settings.h"
#include "tools/doctor_checks.h"
#include "tools/words.h"

namespace coco::tools {
namespace fs = std::filesystem;
namespace {

// How many letters have to be put in, taken out or changed to make one word of the other.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t before = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t change = before + (a[i] == b[j] ? 0 : 1);
            before = row[j + 1];
            row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

std::string most_like(std::string_view name) {
    constexpr std::size_t kTypo = 3;
    const auto settings = base::settings();
    const auto nearest = std::ranges::min_element(
        settings, {}, [&](const base::Setting& s) { return distance(name, s.name); });
    return distance(name, nearest->name) <= kTypo ? nearest->name : "";
}

std::vector<std::string> unknown_variables() {
    std::vector<std::string> names;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view name = std::string_view(*entry).substr(0, std::string_view(*entry).find('='));
        if (name.starts_with("COCO_") &&
            std::ranges::find(base::settings(), name, &base::Setting::name) == base::settings().end())
            names.emplace_back(name);
    }
    std::ranges::sort(names);
    return names;
}

// What a right value does that a user may not expect.
void check_effects(Findings& findings) {
    const std::string disabled(base::env("COCO_DISABLE"));
    if (!disabled.empty() && disabled != "0")
        findings.note("settings", "COCO_DISABLE leaves " + disabled + " to the MPI library",
                      "unset COCO_DISABLE");
    std::uint64_t bytes = 1;
    if (base::parse_bytes(base::env("COCO_HEAP_LIMIT"), bytes) && bytes == 0)
        findings.problem("settings",
                         "COCO_HEAP_LIMIT=0 shares no memory: calls on one node are left to the MPI library",
                         "unset COCO_HEAP_LIMIT");
    if (base::env("COCO_HEAP") == "off")
        findings.note("settings",
                      "COCO_HEAP=off leaves malloc to the program: its buffers are private, and copied or "
                      "read through the kernel",
                      "unset COCO_HEAP");
    for (const base::Setting& setting : base::settings())
        if (std::string_view(setting.name).starts_with("COCO_TEST_") && !base::env(setting.name).empty())
            findings.note("settings", std::string(setting.name) + " is for tests only",
                          "unset " + std::string(setting.name));
}

}  // namespace

void check_settings(Findings& findings) {
    if (settings::is_switched_off()) {
        findings.problem("settings", "COCO_DISABLE=1 leaves every call to the MPI library",
                         "unset COCO_DISABLE");
    } else {
        settings::Settings settings;
        if (auto wrong = settings::read(settings))
            findings.problem("settings", *wrong, "correct it: MPI_Init ends the job with this line");
        else
            findings.ok("settings", settings_in_force().empty() ? "all have their defaults"
                                                                : joined(settings_in_force()));
        check_effects(findings);
    }
    for (const std::string& name : unknown_variables()) {
        const std::string meant = most_like(name);
        findings.note("settings", name + " is no variable of libcoco's, and does nothing",
                      meant.empty() ? "coco info --settings lists all" : "did you mean " + meant + "?");
    }
}

namespace {

// Why nobody can write into a folder that may not be there yet; empty if this user can.
std::string why_not_writable(fs::path folder) {
    std::error_code ignored;
    while (!folder.empty() && !fs::exists(folder, ignored)) folder = folder.parent_path();
    if (access(folder.c_str(), W_OK | X_OK) != 0) return folder.string() + ": " + std::strerror(errno);
    struct stat facts {};
    if (stat(folder.c_str(), &facts) == 0 && (facts.st_mode & S_IWOTH) != 0 && (facts.st_mode & S_ISVTX) == 0)
        return folder.string() + " may be written by all users";
    return {};
}

}  // namespace

void check_learned_rules(Findings& findings) {
    settings::Settings settings;
    if (settings::is_switched_off() || settings::read(settings)) return;
    const settings::Learn& learn = settings.learn;
    if (!learn.reads) return findings.ok("learned rules", "COCO_LEARN=off: none are read, and none are made");
    const fs::path folder =
        learn.file.empty() ? fs::path(settings::learned_folder()) : fs::absolute(learn.file).parent_path();
    if (folder.empty() && !learn.is_on)
        return findings.ok("learned rules", "none: neither XDG_CACHE_HOME nor HOME names a folder for them");
    if (folder.empty())
        return findings.note("learned rules",
                             "there is no folder for them: neither XDG_CACHE_HOME nor HOME names one",
                             "set HOME, or COCO_LEARN=FILE");
    for (const std::string& file : learn.file.empty() ? settings::learned_files() : std::vector{learn.file})
        if (const std::string trouble = settings::trouble_of_learned(file); !trouble.empty())
            return findings.note("learned rules", trouble, "remove the file, or give it to this user alone");
    const std::string why = learn.is_on ? why_not_writable(folder) : std::string();
    if (!why.empty())
        return findings.note("learned rules",
                             "what is learned cannot be kept in " + folder.string() + ": " + why,
                             "COCO_LEARN=FILE in a folder that this user can write");
    findings.ok("learned rules", (learn.is_on ? "read and made in " : "read from ") +
                                     (learn.file.empty() ? folder.string() : learn.file));
}

}  // namespace coco::tools
