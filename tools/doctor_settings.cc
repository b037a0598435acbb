// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the COCO_ variables of this process are right, and whether learned rules can be read and kept.
#include "settings/settings.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/env.h"
#include "heap/process_facts.h"
#include "settings/learned_file.h"
#include "tools/doctor_check.h"
#include "tools/words.h"

namespace coco::tools {
namespace fs = std::filesystem;
namespace {

// How many letters have to be put in, taken out or changed to make one word of the other.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t before = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t change = before + (a[i] == b[j] ? 0 : 1);
            before = std::exchange(row[j + 1], std::min({change, row[j] + 1, row[j + 1] + 1}));
        }
    }
    return row.back();
}

// Empty: no setting's name is like this one.
std::string most_like(std::string_view name) {
    constexpr std::size_t kTypo = 3;
    auto how_far = [&](const base::Setting& setting) { return distance(name, setting.name); };
    const auto settings = base::settings();
    const auto nearest = std::ranges::min_element(settings, {}, how_far);
    return how_far(*nearest) <= kTypo ? nearest->name : "";
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

// What right values do that a user may not expect.
Answers answers_of_effects() {
    Answers answers;
    const std::string disabled(base::env("COCO_DISABLE"));
    if (!disabled.empty() && disabled != "0")
        answers += note({disabled}, "COCO_DISABLE leaves {} to the MPI library -> unset COCO_DISABLE");
    if (heap::heap_limit() == 0u)
        answers += problem(
            "COCO_HEAP_LIMIT=0 shares no memory: calls on one node are left to the MPI "
            "library -> unset COCO_HEAP_LIMIT");
    if (base::env("COCO_HEAP") == "off")
        answers += note(
            "COCO_HEAP=off leaves malloc to the program: its buffers are private, and "
            "copied or read through the kernel -> unset COCO_HEAP");
    for (const base::Setting& setting : base::settings())
        if (const std::string name = setting.name;
            name.starts_with("COCO_TEST_") && !base::env(setting.name).empty())
            answers += note({name, name}, "{} is for tests only -> unset {}");
    return answers;
}

Answers ask_settings(Patient&) {
    Answers answers;
    settings::Settings settings;
    if (settings::is_switched_off()) {
        answers = problem("COCO_DISABLE=1 leaves every call to the MPI library -> unset COCO_DISABLE");
    } else {
        const std::optional<std::string> wrong = settings::read(settings);
        const std::string in_force = joined(settings_in_force());
        answers = wrong ? problem({*wrong}, "{} -> correct it: MPI_Init ends the job with this line")
                        : ok(in_force.empty() ? "all have their defaults" : in_force);
        answers += answers_of_effects();
    }
    for (const std::string& name : unknown_variables()) {
        const std::string meant = most_like(name);
        answers +=
            note({name, meant.empty() ? "coco info --settings lists all" : "did you mean " + meant + "?"},
                 "{} is no variable of libcoco's, and does nothing -> {}");
    }
    return answers;
}

// Why nobody can write into a folder that may not be there yet; empty if this user can.
std::string why_not_writable(fs::path folder) {
    std::error_code ignored;
    while (!folder.empty() && !fs::exists(folder, ignored)) folder = folder.parent_path();
    if (access(folder.c_str(), W_OK | X_OK) != 0) return folder.string() + ": " + std::strerror(errno);
    struct stat facts {};
    const bool is_known = stat(folder.c_str(), &facts) == 0;
    const bool is_open = is_known && (facts.st_mode & S_IWOTH) != 0 && (facts.st_mode & S_ISVTX) == 0;
    return is_open ? folder.string() + " may be written by all users" : "";
}

Answers ask_learned_rules(Patient&) {
    settings::Settings settings;
    if (settings::is_switched_off() || settings::read(settings)) return {};
    const settings::Learn& learn = settings.learn;
    if (!learn.reads) return ok("COCO_LEARN=off: none are read, and none are made");
    const fs::path folder =
        learn.file.empty() ? fs::path(settings::learned_folder()) : fs::absolute(learn.file).parent_path();
    if (folder.empty() && !learn.is_on)
        return ok("none: neither XDG_CACHE_HOME nor HOME names a folder for them");
    if (folder.empty())
        return note(
            "there is no folder for them: neither XDG_CACHE_HOME nor HOME names one -> set HOME, or "
            "COCO_LEARN=FILE");
    for (const std::string& file : learn.file.empty() ? settings::learned_files() : std::vector{learn.file})
        if (const std::string trouble = settings::trouble_of_learned(file); !trouble.empty())
            return note({trouble}, "{} -> remove the file, or give it to this user alone");
    const std::string why = learn.is_on ? why_not_writable(folder) : std::string();
    if (!why.empty())
        return note({folder.string(), why},
                    "what is learned cannot be kept in {}: {} -> COCO_LEARN=FILE in a folder that this user "
                    "can write");
    return ok({(learn.is_on ? "read and made in " : "read from "),
               (learn.file.empty() ? folder.string() : learn.file)},
              "{}{}");
}

constexpr OwnCheck kSettingsChecks[] = {
    {"settings", ask_settings},
    {"learned rules", ask_learned_rules},
};

}  // namespace

OwnChecks settings_checks() { return kSettingsChecks; }

}  // namespace coco::tools
