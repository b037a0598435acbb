// SPDX-License-Identifier: BSD-3-Clause
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>

#include "base/env.h"
#include "os/probe.h"
#include "settings/learned_file.h"
#include "settings/settings.h"
#include "tools/commands.h"
#include "tools/launch.h"
#include "tools/mpi_found.h"

namespace coco::tools {
namespace {

// What --explain asks.
struct Question {
    std::string collective, ranks, block;
    int nodes = 1;
    std::uint64_t degree = 0, calls = 1;
};

int fail(const std::string& line) {
    std::cerr << "coco: error: " << line << '\n';
    return 2;
}

void print_libraries(const std::string& program) {
    const std::string file = library_file();
    std::cout << "library: " << (file.empty() ? "not built" : file) << '\n';
    const std::vector<std::string> candidates = program.empty() ? known_mpi_names() : mpi_files_of(program);
    bool found = false;
    for (const std::string& candidate : candidates)
        if (std::string line = describe_mpi(candidate); !line.empty()) {
            std::cout << "MPI found: " << line << '\n';
            found = true;
        }
    if (!found)
        std::cout << "MPI found: none "
                  << (program.empty() ? "by the loader; `coco info PROGRAM` looks at a program's own\n"
                                      : "among the libraries that " + program + " is linked with\n");
}

void print_machine() {
    const os::Caches& caches = os::caches();
    std::cout << "CPUs: " << os::usable_cpus().count() << ", NUMA domain here: " << os::seat().domain
              << "\ncaches: L1 " << caches.l1_bytes << ", L2 " << caches.l2_bytes << ", last level "
              << caches.last_level_bytes << " bytes for " << caches.last_level_cpus << " CPUs\n";
    std::ifstream in("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    std::string modes;
    std::getline(in, modes);
    std::cout << "huge pages in shared memory: " << (modes.empty() ? "not offered by this kernel" : modes)
              << '\n';
}

void print_settings() {
    for (const base::Setting& s : base::settings()) {
        std::string_view value = base::env(s.name);
        std::cout << s.name << ": " << (value.empty() ? s.preset : value)
                  << (value.empty() ? " (default)\n" : " (environment)\n");
    }
}

// Neighbours' blocks are common to all ranks in some topologies, and in others not.
void print_explained(const policy::Policy& policy, policy::Facts facts) {
    using algorithms::Collective;
    // Among v and w forms only allgatherv has all sizes on all ranks.
    if (is_sized(facts.collective) && facts.collective != Collective::allgatherv) facts.block_bytes.reset();
    const bool depends = is_neighbor(facts.collective) && facts.block_bytes;
    if (depends)
        std::cout << "In topologies in which all ranks know the largest block (docs/neighbors.md):\n";
    std::cout << policy::explain(policy, facts);
    if (!depends) return;
    facts.block_is_own = true;
    std::cout << "In others:\n" << policy::explain(policy, facts);
}

int info(const std::string& program) {
    settings::Settings settings;
    if (auto wrong = settings::read(settings)) return fail(*wrong);
    const policy::Policy& policy = settings.policy;
    std::cout << "libcoco " COCO_VERSION "\n";
    print_libraries(program);
    print_machine();
    print_settings();
    std::cout << "policy: " << policy.source << '\n';
    for (const policy::Rule& rule : policy.rules)
        std::cout << "  line " << rule.line << ": " << rule.text
                  << (rule.reason.empty() ? "" : " (" + rule.reason + ")") << '\n';
    return 0;
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

int settings_markdown() {
    std::cout << "| variable | value | default | meaning |\n|---|---|---|---|\n";
    for (const base::Setting& s : base::settings())
        std::cout << "| `" << s.name << "` | " << s.choices << " | " << s.preset << " | " << s.summary
                  << " |\n";
    return 0;
}

// What jobs on this machine have learned, which goes before the policy's rules; a file for each MPI library.
void print_learned(const settings::Settings& settings, const policy::Facts& facts) {
    for (const policy::Learned& learned : settings::all_learned(settings.learn.file)) {
        if (learned.key != settings::key_for(learned.key.mpi, settings.policy.rules)) continue;
        policy::Policy both{.rules = learned.rules, .forced = {}, .source = "learned rules"};
        std::cout << "Learned with " << learned.key.mpi << ":\n" << policy::explain(both, facts);
    }
}

int explain(const Question& question) {
    settings::Settings settings;
    if (auto wrong = settings::read(settings)) return fail(*wrong);
    const policy::Policy& policy = settings.policy;
    auto collective = base::collective_of(question.collective);
    if (!collective)
        return fail("--explain " + question.collective + ": unknown collective (coco info --algorithms)");
    std::uint64_t ranks = 0, block = 0;
    if (!base::parse_number(question.ranks, ranks) || ranks == 0 || ranks > INT32_MAX)
        return fail("--explain: ranks " + question.ranks + ": must be a number above 0");
    if (!base::parse_bytes(question.block, block))
        return fail("--explain: block " + question.block + ": must be bytes, with K, M, G or T");
    auto nodes = static_cast<std::uint64_t>(question.nodes);
    policy::Facts facts{*collective, question.nodes, static_cast<std::int32_t>((ranks + nodes - 1) / nodes),
                        1, block};
    facts.calls = question.calls;
    if (is_neighbor(*collective)) facts.degree = question.degree;
    print_explained(policy, facts);
    if (settings.learn.reads) print_learned(settings, facts);
    return 0;
}

// The words of `coco info`.
struct Words {
    std::string program;
    std::vector<std::string> asked;
    Question question;
    bool algorithms = false, markdown = false;
};

int answer(Words& words) {
    if (words.algorithms) return list_algorithms();
    if (words.markdown) return settings_markdown();
    if (words.asked.empty()) return info(words.program);
    words.question.collective = words.asked[0];
    words.question.ranks = words.asked[1];
    words.question.block = words.asked[2];
    return explain(words.question);
}

}  // namespace

void add_info(CLI::App& app, int& status) {
    CLI::App* command = app.add_subcommand("info", "MPI libraries, machine, settings and policy");
    auto words = std::make_shared<Words>();
    command->add_option("program", words->program, "tell of the MPI library that this program uses");
    command
        ->add_option("--explain", words->asked, "COLLECTIVE RANKS BLOCK_BYTES: which rule applies, and why")
        ->expected(3);
    command->add_option("--nodes", words->question.nodes, "nodes, for --explain")
        ->check(CLI::Range(1, 1 << 20));
    command
        ->add_option("--degree", words->question.degree,
                     "for --explain of neighbours: edges from a rank to other nodes, the mean")
        ->check(CLI::NonNegativeNumber);
    command
        ->add_option("--calls", words->question.calls, "for --explain: which call on the communicator it is")
        ->check(CLI::PositiveNumber);
    command->add_flag("--algorithms", words->algorithms, "list the algorithms");
    command->add_flag("--settings-markdown", words->markdown, "the environment variables as a table");
    command->callback([words, &status] { status = answer(*words); });
}

}  // namespace coco::tools
