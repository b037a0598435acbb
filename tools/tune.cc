// SPDX-License-Identifier: BSD-3-Clause
//
// `coco tune`: its words, and its two lives. The command is linked with no MPI: in its first life each rank
// finds the MPI library and execs the command once more, with libcoco and that library preloaded; in its
// second life it is an MPI program like others.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/env.h"
#include "os/process.h"
#include "settings/settings.h"
#include "tools/child.h"
#include "tools/commands.h"
#include "tools/launch.h"
#include "tools/mpi_found.h"
#include "tools/tune_session.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

using algorithms::Collective;

struct TuneWords {
    double minutes = 5;
    std::string collectives = "alltoall,alltoallv,alltoallw,allgather,allgatherv,bcast";
    std::string from = "8", to = "1M", output = "coco-tuned.toml", mpi;
    std::string preloaded;  // in the second life: the MPI library
};

// All ranks have the same words and fail alike: one of them says so.
int fail_alike(const std::string& line) { return os::launched_rank() <= 0 ? tell_error("tune: " + line) : 2; }

std::optional<std::string> read_collectives(std::string_view words, std::vector<Collective>& collectives) {
    for (std::size_t comma = 0; comma != std::string_view::npos; words.remove_prefix(comma + 1)) {
        comma = words.find(',');
        const std::string_view word = words.substr(0, comma);
        const auto collective = base::collective_of(word);
        if (!collective)
            return "--collectives: unknown collective '" + std::string(word) + "': must be a list of " +
                   policy::list_of_collectives();
        if (std::ranges::find(collectives, *collective) == collectives.end())
            collectives.push_back(*collective);
        if (comma == std::string_view::npos) break;
    }
    std::ranges::sort(collectives);  // the related ones side by side, as they may share rules
    return std::nullopt;
}

std::optional<std::string> read_bytes(const char* word, const std::string& text, std::uint64_t& bytes) {
    constexpr std::uint64_t kMostBytes = 1 << 30;
    if (base::parse_bytes(text, bytes) && bytes >= 1 && bytes <= kMostBytes) return std::nullopt;
    return std::string(word) + " " + text + ": must be bytes from 1 to 1G, with K, M or G";
}

std::optional<std::string> read_plan(const TuneWords& words, TunePlan& plan) {
    if (auto wrong = read_collectives(words.collectives, plan.collectives)) return wrong;
    if (auto wrong = read_bytes("--from", words.from, plan.from_bytes)) return wrong;
    if (auto wrong = read_bytes("--to", words.to, plan.to_bytes)) return wrong;
    if (plan.from_bytes > plan.to_bytes) return "--from " + words.from + " is larger than --to " + words.to;
    constexpr double kMostMinutes = 60.0 * 24 * 30;
    if (!(words.minutes > 0 && words.minutes <= kMostMinutes))
        return "--minutes: must be a number above 0, of 43200 at most";
    if (!words.output.ends_with(".toml") || words.output.ends_with("/.toml") || words.output == ".toml")
        return "-o " + words.output + ": must be a file name that ends in .toml";
    plan.minutes = words.minutes;
    plan.policy_path = words.output;
    return std::nullopt;
}

// The environment goes before all rules: with these there is nothing to choose.
std::optional<std::string> forced_setting(const policy::Policy& policy) {
    if (settings::is_switched_off()) return "COCO_DISABLE=1 switches libcoco off: unset it to tune";
    for (const base::CollectiveFacts& row : base::kCollectiveTable)
        if (policy.forced[static_cast<int>(row.collective)])
            return "the environment decides about " + std::string(row.name) +
                   ": unset COCO_DISABLE and the variable of this collective to tune";
    return std::nullopt;
}

std::vector<std::string> own_arguments() {
    std::ifstream in("/proc/self/cmdline", std::ios::binary);
    std::vector<std::string> arguments;
    for (std::string argument; std::getline(in, argument, '\0');) arguments.push_back(argument);
    return arguments;
}

int first_life(const TuneWords& words) {
    if (!is_launched())
        return fail_alike("start it on the ranks to tune for, as a program: mpiexec -n RANKS coco tune");
    std::string why;
    const std::string mpi = mpi_to_tune(words.mpi, why), libcoco = library_file();
    if (mpi.empty()) return fail_alike(why);
    if (libcoco.empty()) return fail_alike(why_no_library());
    for (const std::string& library : {libcoco, mpi})
        if (std::string unfit = unfit_to_preload(library); !unfit.empty()) return fail_alike(unfit);
    // libcoco, the MPI library, and what was preloaded already.
    setenv("LD_PRELOAD", preload_list(libcoco).insert(libcoco.size(), ":" + mpi).c_str(), 1);
    setenv("COCO_LEARN", "off", 1);
    std::vector<std::string> again = own_arguments();
    again.insert(again.end(), {"--preloaded", mpi});
    execv("/proc/self/exe", as_arguments(again).data());
    return fail_alike(std::string("cannot start itself again: ") + std::strerror(errno));
}

int second_life(const TuneWords& words, const TunePlan& plan, const policy::Policy& policy) {
    std::string why;
    const std::unique_ptr<Job> job = Job::start(why);
    if (job == nullptr) return fail_alike("libcoco and " + words.preloaded + ": " + why);
    if (job->ranks() == 1)
        return fail_alike("one rank alone has nothing to tune: mpiexec -n RANKS coco tune");
    return run_session(*job, plan, policy);
}

int tune(const TuneWords& words) {
    TunePlan plan;
    if (auto wrong = read_plan(words, plan)) return fail_alike(*wrong);
    settings::Settings settings;
    if (auto wrong = settings::read(settings)) return fail_alike(*wrong);
    if (auto wrong = forced_setting(settings.policy)) return fail_alike(*wrong);
    return words.preloaded.empty() ? first_life(words) : second_life(words, plan, settings.policy);
}

}  // namespace

void add_tune(CLI::App& app, int& status) {
    CLI::App* command = app.add_subcommand(
        "tune", "measure what is fastest here, and write a policy: mpiexec -n RANKS coco tune");
    auto words = std::make_shared<TuneWords>();
    auto add = [&](const char* option, std::string& word, const char* type, const char* meaning) {
        command->add_option(option, word, meaning)->type_name(type)->capture_default_str();
    };
    command->add_option("--minutes", words->minutes, "how long it may take")->capture_default_str();
    add("--collectives", words->collectives, "COLLECTIVES", "which ones, with commas between them");
    add("--from", words->from, "BYTES", "of the smallest block");
    add("--to", words->to, "BYTES", "of the largest block");
    add("-o,--output", words->output, "FILE", "the policy file; the report is .json beside it");
    add("--mpi", words->mpi, "FILE", "the MPI library, or the folder that MPI was installed to");
    command->add_option("--preloaded", words->preloaded, "")->group("");  // for itself
    command->callback([words, &status] { status = tune(*words); });
}

}  // namespace coco::tools
