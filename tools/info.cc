// SPDX-License-Identifier: BSD-3-Clause
//
// `coco info`: what is known of this machine, of the MPI libraries, of the settings, and of how a call is
// chosen for.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/env.h"
#include "heap/process_facts.h"
#include "os/probe.h"
#include "settings/learned_file.h"
#include "settings/settings.h"
#include "tools/commands.h"
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
    return filled({os::processors(), os::usable_cpus().count(),
                   counted(std::max<std::size_t>(cpus_of_domains().size(), 1), "NUMA domain"),
                   in_words(caches.l1_bytes), in_words(caches.l2_bytes), in_words(caches.last_level_bytes)},
                  "{}, of which {} for this process; {}; caches {}, {}, and {}");
}

std::string huge_pages(const char* file) {
    const std::string choice = choice_in_force(std::string("/sys/kernel/mm/transparent_hugepage/") + file);
    return choice.empty() ? "not offered" : choice;
}

std::string heap() {
    const std::string_view mode = base::env("COCO_HEAP");
    const std::uint64_t bytes = heap::wanted_heap_bytes();
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

// Ten lines, and one for each MPI library beyond the first. program: whose MPI library to tell of; empty:
// those that the loader finds.
std::string in_brief(const settings::Settings& settings, const std::string& program) {
    const std::string library = library_file(), set = joined(settings_in_force());
    const policy::Policy& policy = settings.policy;
    return aligned(
        {{"libcoco", COCO_VERSION},
         {"library", library.empty() ? why_no_library() : library},
         {"MPI", libraries(program)},
         {"machine", machine()},
         {"kernel", filled({kernel_name(), huge_pages("enabled"), huge_pages("shmem_enabled")},
                           "{}; huge pages: {}, in shared memory: {}")},
         {"heap", heap()},
         {"learning", learning(settings.learn)},
         {"policy", policy.source + ", " + counted(policy.rules.size(), "rule") + " (coco info --rules)"},
         {"settings", (set.empty() ? "all have their defaults" : set) + " (coco info --settings)"},
         {"switch off",
          "COCO_DISABLE=1, or run without the preload (coco doctor: what keeps it from working)"}});
}

// As a policy file has it; empty: any.
std::string text_of(const policy::Range& range) {
    if (range.first == 0 && range.last == UINT64_MAX) return {};
    if (range.first == range.last) return base::bytes_text(range.first);
    return (range.first == 0 ? "" : base::bytes_text(range.first)) + "-" +
           (range.last == UINT64_MAX ? "" : base::bytes_text(range.last));
}

std::vector<std::string> row_of(const policy::Policy& policy, const policy::Rule& rule) {
    std::vector<std::string> also;
    for (const policy::Choice& choice : rule.also) also.push_back(policy::text_of(choice));
    return {(rule.source == policy.source ? "" : rule.source + " ") + std::to_string(rule.line),
            std::string(base::name_of(rule.collective)),
            text_of(rule.nodes),
            text_of(rule.ranks),
            text_of(rule.domains),
            rule.crowded == policy::Range{} ? ""
            : rule.crowded.contains(1)      ? "true"
                                            : "false",
            text_of(rule.block),
            text_of(rule.degree),
            text_of(rule.calls),
            policy::text_of(rule.choice),
            joined(also, ","),
            rule.reason};
}

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

// What --explain asks.
struct Question {
    std::string collective, ranks, block;
    int nodes = 1;
    int domains = 0;  // not told: one on each node
    bool crowded = false;
    std::uint64_t degree = 0, calls = 1;
};

// Neighbours' blocks are common to all ranks in some topologies, and in others not.
void print_explained(const policy::Policy& policy, policy::Facts facts) {
    // The other v and w forms go by the largest block of the call before, or all ranks have all sizes.
    if (is_sized(facts.collective) && is_neighbor(facts.collective)) facts.block_bytes.reset();
    const bool depends = is_neighbor(facts.collective) && facts.block_bytes;
    if (depends)
        std::cout << "In topologies in which all ranks know the largest block (docs/neighbors.md):\n";
    std::cout << policy::explain(policy, facts);
    if (!depends) return;
    facts.block_is_own = true;
    std::cout << "In others:\n" << policy::explain(policy, facts);
}

int list_algorithms() {
    std::cout << "mpi: the MPI library's own function\n  serves every collective\n";
    for (const algorithms::Algorithm& a : algorithms::registry()) {
        std::cout << a.name << ": " << a.summary << "\n  from " << a.source << "\n  serves";
        for (int c = 0; c < algorithms::kCollectives; ++c)
            if (auto collective = static_cast<algorithms::Collective>(c); algorithms::serves(a, collective))
                std::cout << ' ' << base::name_of(collective);
        std::cout << '\n';
    }
    return 0;
}

// What jobs on this machine have learned, which goes before the policy's rules; a file for each MPI library.
void print_learned(const settings::Settings& settings, const policy::Facts& facts) {
    for (const policy::Learned& learned : settings::all_learned(settings.learn.file)) {
        // Jobs may have other settings of the MPI library's than this shell has.
        policy::LearnedKey key = settings::key_for(learned.key.mpi, settings.policy.rules);
        const bool is_as_here = key == learned.key;
        key.transport = learned.key.transport;
        if (learned.key != key) continue;
        policy::Policy both{.rules = learned.rules, .forced = {}, .source = "learned rules"};
        std::cout << "Learned with " << learned.key.mpi << (key.transport.empty() ? "" : ", " + key.transport)
                  << (is_as_here ? "" : " (other network or settings than here)") << ":\n"
                  << policy::explain(both, facts);
    }
}

int explain(const Question& question) {
    settings::Settings settings;
    if (auto wrong = settings::read(settings)) return tell_error(*wrong);
    const policy::Policy& policy = settings.policy;
    auto collective = base::collective_of(question.collective);
    if (!collective)
        return tell_error("--explain " + question.collective +
                          ": unknown collective (coco info --algorithms)");
    std::uint64_t ranks = 0, block = 0;
    if (!base::parse_number(question.ranks, ranks) || ranks == 0 || ranks > INT32_MAX)
        return tell_error("--explain: ranks " + question.ranks + ": must be a number above 0");
    if (!base::parse_bytes(question.block, block))
        return tell_error("--explain: block " + question.block + ": must be bytes, with K, M, G or T");
    auto nodes = static_cast<std::uint64_t>(question.nodes);
    policy::Facts facts{*collective, question.nodes, static_cast<std::int32_t>((ranks + nodes - 1) / nodes),
                        std::max(question.nodes, question.domains), block};
    facts.calls = question.calls;
    facts.crowded = question.crowded;
    if (is_neighbor(*collective)) facts.degree = question.degree;
    print_explained(policy, facts);
    if (settings.learn.reads) print_learned(settings, facts);
    return 0;
}

// The words of `coco info`.
struct InfoWords {
    std::string program;
    std::vector<std::string> asked;
    Question question;
    bool rules = false, settings = false, algorithms = false;
};

int print(const std::string& text) {
    std::cout << text;
    return 0;
}

int tell(const InfoWords& words) {
    settings::Settings settings;
    if (auto wrong = settings::read(settings)) return tell_error(*wrong);
    if (words.rules) return print(rules_as_table(settings.policy));
    return print(words.settings ? settings_as_table() : in_brief(settings, words.program));
}

int answer(InfoWords& words) {
    if (words.algorithms) return list_algorithms();
    if (words.asked.empty()) return tell(words);
    words.question.collective = words.asked[0];
    words.question.ranks = words.asked[1];
    words.question.block = words.asked[2];
    return explain(words.question);
}

}  // namespace

void add_info(CLI::App& app, int& status) {
    CLI::App* command = app.add_subcommand(
        "info", "version, MPI libraries, machine, heap, settings and policy, in ten lines");
    auto words = std::make_shared<InfoWords>();
    command->add_option("program", words->program, "tell of the MPI library that this program uses")
        ->type_name("PROGRAM");
    command->add_option("--explain", words->asked, "which rule applies to such a call, and why")
        ->type_name("COLLECTIVE RANKS BLOCK")
        ->expected(3);
    command->add_option("--nodes", words->question.nodes, "nodes, for --explain")
        ->capture_default_str()
        ->check(CLI::Range(1, 1 << 20));
    command
        ->add_option("--domains", words->question.domains,
                     "for --explain: NUMA domains with ranks, on all nodes together (one on each)")
        ->check(CLI::Range(1, 1 << 20));
    command->add_flag("--crowded", words->question.crowded,
                      "for --explain: there are more ranks than CPUs on some host");
    command
        ->add_option("--degree", words->question.degree,
                     "for --explain of neighbours: edges from a rank to other nodes, the mean")
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);
    command
        ->add_option("--calls", words->question.calls, "for --explain: which call on the communicator it is")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    command->add_flag("--rules", words->rules,
                      "the rules of the policy, of which the first that matches a call holds");
    command->add_flag("--settings", words->settings, "all settings, their values and where these are from");
    command->add_flag("--algorithms", words->algorithms, "the algorithms, and which collectives each serves");
    command->callback([words, &status] { status = answer(*words); });
}

}  // namespace coco::tools
