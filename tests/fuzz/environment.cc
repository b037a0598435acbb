// SPDX-License-Identifier: BSD-3-Clause
// Fuzz target: the environment, as entries NAME=VALUE that a zero byte ends. POLICY_FILE=TEXT is what is in
// the file that COCO_POLICY=@ names: other names would let an input read any file of this machine.
#include <cstdlib>

#include "base/env.h"
#include "base/heap_mode.h"
#include "fuzz.h"
#include "os/process.h"
#include "settings/settings.h"

namespace {

using namespace coco;

// Variables of launchers, which are read too.
constexpr const char* kLaunchers[] = {"PMI_RANK",
                                      "PMI_ID",
                                      "PMIX_RANK",
                                      "OMPI_COMM_WORLD_RANK",
                                      "SLURM_PROCID",
                                      "SLURM_TASKS_PER_NODE",
                                      "SLURM_STEP_TASKS_PER_NODE",
                                      "SLURM_NODEID",
                                      "SLURM_NTASKS_PER_NODE",
                                      "FLUX_JOB_NNODES",
                                      "FLUX_JOB_SIZE",
                                      "MPI_LOCALNRANKS"};

void clear() {
    for (const base::Setting& setting : base::settings()) unsetenv(setting.name);
    for (const char* name : kLaunchers) unsetenv(name);
}

bool is_read(std::string_view name) {
    for (const base::Setting& setting : base::settings())
        if (name == setting.name) return true;
    for (const char* launcher : kLaunchers)
        if (name == launcher) return true;
    return false;
}

void set(std::string_view entry, const fuzz::File& file) {
    const std::size_t equals = entry.find('=');
    if (equals == entry.npos) return;
    const std::string name(entry.substr(0, equals));
    std::string value(entry.substr(equals + 1));
    if (name == "POLICY_FILE") file.write(value);
    if (name == "COCO_POLICY") value = value == "@" ? file.path() : value == "/" ? "/tmp" : "no/" + value;
    if (is_read(name)) setenv(name.c_str(), value.c_str(), 1);
}

// What reads a value is total, and reads its own text back.
void check_value(std::string_view value) {
    std::uint64_t number = 0, bytes = 0;
    if (base::parse_number(value, number)) {
        REQUIRE_TRUE(base::parse_bytes(value, bytes) && bytes == number, value);
        REQUIRE_TRUE(base::parse_number(std::to_string(number), bytes) && bytes == number, value);
    }
    if (base::parse_bytes(value, bytes)) {
        const auto range = policy::parse_range(value);
        REQUIRE_TRUE(range && range->first == bytes && range->last == bytes, value);
    }
    if (const auto range = policy::parse_range(value)) {
        REQUIRE_TRUE(range->first <= range->last, value);
        const auto again =
            policy::parse_range(std::to_string(range->first) + "-" + std::to_string(range->last));
        REQUIRE_TRUE(again && again->first == range->first && again->last == range->last, value);
    }
    base::HeapMode mode{};
    static_cast<void>(base::parse_heap_mode(value, mode));
    static_cast<void>(os::tasks_of_node(value, 3));
    for (int c = 0; c < algorithms::kCollectives; ++c) {
        policy::Choice choice, again;
        const auto collective = static_cast<algorithms::Collective>(c);
        if (auto error = policy::parse_choice(value, collective, choice)) {
            REQUIRE_TRUE(fuzz::is_one_line(error->line), error->line);
            continue;
        }
        REQUIRE_TRUE(!policy::parse_choice(policy::text_of(choice), collective, again) && choice == again,
                     value);
    }
}

// The line names the variable and what is wrong with it.
void check_error(const std::string& line) {
    REQUIRE_TRUE(fuzz::is_one_line(line), line);
    const std::string name = line.substr(0, line.find('='));
    REQUIRE_TRUE(is_read(name) && !base::env(name.c_str()).empty(), line);
    REQUIRE_TRUE(line.find(": ") != line.npos, line);
}

void check_settings(const settings::Settings& settings) {
    settings::Settings again;
    REQUIRE_TRUE(!settings::read(again), "the same environment once more");
    const policy::Policy& policy = settings.policy;
    REQUIRE_TRUE(settings::choice_hash(policy) == settings::choice_hash(again.policy), "the hash of choices");
    for (int c = 0; c < algorithms::kCollectives; ++c) {
        const auto collective = static_cast<algorithms::Collective>(c);
        REQUIRE_TRUE(policy.forced[c] == again.policy.forced[c], "what is forced");
        const policy::Facts facts{collective, 2, 4, 1, 4096};
        const policy::Verdict verdict = policy::select(policy, facts);
        REQUIRE_TRUE(verdict.forced == policy.forced[c].has_value(), "what is forced");
        REQUIRE_TRUE(!verdict.forced || verdict.choice == *policy.forced[c], "what is forced");
        REQUIRE_TRUE(policy::explain(policy, facts).starts_with(base::name_of(collective)),
                     "what is explained");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::File file("policy.toml");
    file.write("");
    clear();
    for (fuzz::Input input(data, size); !input.is_empty();) {
        const std::string_view entry = input.text_before('\0');
        set(entry, file);
        check_value(entry.substr(entry.find('=') + 1));
    }
    settings::Settings settings;
    if (auto wrong = settings::read(settings))
        check_error(*wrong);
    else
        check_settings(settings);
    REQUIRE_TRUE(os::node_ranks() >= 1, "ranks of a node");
    REQUIRE_TRUE(os::launched_rank() >= -1, "the launched rank");
    static_cast<void>(os::is_mpi_rank());
    clear();
    return 0;
}
