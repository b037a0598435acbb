// SPDX-License-Identifier: BSD-3-Clause
#include "tools/info_texts.h"

#include <algorithm>

#include "base/env.h"
#include "os/probe.h"
#include "settings/learned_file.h"
#include "tools/launch.h"
#include "tools/mpi_found.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

std::string libraries(const std::string& program) {
    std::string all;
    for (const std::string& candidate : program.empty() ? known_mpi_names() : mpi_files_of(program))
        if (std::optional<MpiFound> mpi = find_mpi(candidate))
            all += (all.empty() ? "" : "; and ") + describe(*mpi);
    if (!all.empty()) return all;
    return program.empty() ? "the loader finds none; coco info PROGRAM looks at a program's own"
                           : "none among the libraries that " + program + " is linked with";
}

std::string machine() {
    const os::Caches& caches = os::caches();
    return os::processors() + ", of which " + std::to_string(os::usable_cpus().count()) +
           " for this process; " +
           counted(std::max<std::size_t>(cpus_of_domains().size(), 1), "NUMA domain") + "; caches " +
           in_words(caches.l1_bytes) + ", " + in_words(caches.l2_bytes) + ", and " +
           in_words(caches.last_level_bytes);
}

std::string huge_pages(const char* file) {
    const std::string choice = choice_in_force(std::string("/sys/kernel/mm/transparent_hugepage/") + file);
    return choice.empty() ? "not offered" : choice;
}

std::string heap() {
    const std::string_view mode = base::env("COCO_HEAP");
    const std::uint64_t bytes = heap_bytes();
    if (bytes == 0) return "no shared memory for a rank, by COCO_HEAP_LIMIT or a limit of the system's";
    return std::string(mode.empty() ? base::setting("COCO_HEAP").preset : mode) + ", at most " +
           in_words(bytes) + " for each rank";
}

std::string learning(const settings::Learn& learn) {
    const std::string mode = learn.is_on ? "on" : learn.reads ? "read only" : "off";
    if (!learn.file.empty()) return mode + ", with the rules in " + learn.file;
    const std::string folder = settings::learned_folder();
    if (folder.empty()) return mode + "; there is no folder for learned rules";
    return mode + "; " + counted(settings::learned_files().size(), "file") + " of learned rules in " + folder;
}

std::string settings_in_words() {
    const std::vector<std::string> set = settings_in_force();
    return (set.empty() ? "all have their defaults" : joined(set)) + " (coco info --settings)";
}

}  // namespace

std::string in_brief(const settings::Settings& settings, const std::string& program) {
    const std::string library = library_file();
    const policy::Policy& policy = settings.policy;
    std::vector<std::vector<std::string>> rows = {{"libcoco", COCO_VERSION},
                                                  {"library", library.empty() ? why_no_library() : library},
                                                  {"MPI", libraries(program)},
                                                  {"machine", machine()}};
    rows.push_back({"kernel", kernel_name() + "; huge pages: " + huge_pages("enabled") +
                                  ", in shared memory: " + huge_pages("shmem_enabled")});
    rows.push_back({"heap", heap()});
    rows.push_back({"learning", learning(settings.learn)});
    rows.push_back(
        {"policy", policy.source + ", " + counted(policy.rules.size(), "rule") + " (coco info --rules)"});
    rows.push_back({"settings", settings_in_words()});
    rows.push_back({"switch off",
                    "COCO_DISABLE=1, or run without the preload (coco doctor: what keeps it from working)"});
    return aligned(rows);
}

namespace {

// As a policy file has it; empty: any.
std::string text_of(const policy::Range& range) {
    if (range.first == 0 && range.last == UINT64_MAX) return {};
    if (range.first == range.last) return base::bytes_text(range.first);
    return (range.first == 0 ? "" : base::bytes_text(range.first)) + "-" +
           (range.last == UINT64_MAX ? "" : base::bytes_text(range.last));
}

std::string place_of(const policy::Policy& policy, const policy::Rule& rule) {
    return (rule.source == policy.source ? "" : rule.source + " ") + std::to_string(rule.line);
}

std::vector<std::string> row_of(const policy::Policy& policy, const policy::Rule& rule) {
    std::vector<std::string> also;
    for (const policy::Choice& choice : rule.also) also.push_back(policy::text_of(choice));
    return {place_of(policy, rule),
            std::string(base::name_of(rule.collective)),
            text_of(rule.nodes),
            text_of(rule.ranks),
            text_of(rule.domains),
            rule.crowded == policy::Range{} ? "" : rule.crowded.contains(1) ? "true" : "false",
            text_of(rule.block),
            text_of(rule.degree),
            text_of(rule.calls),
            policy::text_of(rule.choice),
            joined(also, ","),
            rule.reason};
}

}  // namespace

std::string rules_as_table(const policy::Policy& policy) {
    std::vector<std::vector<std::string>> rows = {{"line", "collective", "nodes", "ranks", "domains",
                                                   "crowded", "block", "degree", "calls", "algorithm", "also",
                                                   "reason"}};
    for (const policy::Rule& rule : policy.rules) rows.push_back(row_of(policy, rule));
    std::string forced;
    for (int c = 0; c < algorithms::kCollectives; ++c)
        if (policy.forced[c])
            forced += "The environment forces " +
                      std::string(base::name_of(static_cast<base::Collective>(c))) + ": " +
                      policy::text_of(*policy.forced[c]) + "\n";
    return "Rules: " + policy.source +
           ". The first that matches holds, an empty place matches all, and where no "
           "rule matches the call is left to the MPI library.\n" +
           forced + aligned(rows);
}

std::string settings_as_table() {
    std::vector<std::vector<std::string>> rows;
    for (const base::Setting& s : base::settings()) {
        const std::string value(base::env(s.name));
        rows.push_back({s.name, value.empty() ? s.preset : value, value.empty() ? "default" : "environment"});
    }
    return aligned(rows);
}

std::string settings_as_markdown() {
    std::string text = "| variable | value | default | meaning |\n|---|---|---|---|\n";
    for (const base::Setting& s : base::settings())
        text +=
            std::string("| `") + s.name + "` | " + s.choices + " | " + s.preset + " | " + s.summary + " |\n";
    return text;
}

}  // namespace coco::tools
