// SPDX-License-Identifier: BSD-3-Clause
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/env.h"
#include "settings/learned_file.h"
#include "settings/settings.h"
#include "tools/commands.h"
#include "tools/info_texts.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

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
    bool rules = false, settings = false, algorithms = false, markdown = false;
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
    if (words.markdown) return print(settings_as_markdown());
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
    command->add_flag("--settings-markdown", words->markdown)->group("");  // for scripts/make_docs
    command->callback([words, &status] { status = answer(*words); });
}

}  // namespace coco::tools
