// SPDX-License-Identifier: BSD-3-Clause
//
// The `coco` command: run a program with libcoco, tell about machine and policy, tune a policy for a machine,
// make pages of what was measured.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string_view>

#include "algorithms/algorithm.h"
#include "base/env.h"
#include "os/process.h"
#include "tools/commands.h"
#include "tools/launch.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

using nlohmann::ordered_json;

ordered_json describe(const CLI::Option& option) {
    ordered_json names = ordered_json::array();
    for (const std::string& name : option.get_snames()) names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
    // How many words follow it: none behind a flag.
    const bool is_flag = option.get_type_size() == 0;
    return {{"names", names},
            {"positional", option.get_positional() ? option.get_name(true) : ""},
            {"description", option.get_description()},
            {"type", is_flag ? "" : option.get_type_name()},
            {"words", is_flag ? 0 : option.get_items_expected_max()},
            {"default", is_flag ? "" : option.get_default_str()},
            {"required", option.get_required()}};
}

ordered_json describe(const CLI::App& app) {
    ordered_json options = ordered_json::array();
    for (const CLI::Option* option : app.get_options())
        if (!option->get_group().empty()) options.push_back(describe(*option));
    return {
        {"name", app.get_name()}, {"description", app.get_description()}, {"options", std::move(options)}};
}

// The command line and the tables of libcoco, of which scripts/make_manual makes manual pages and
// completions.
std::string description_of(const CLI::App& app) {
    ordered_json root = describe(app);
    root["version"] = COCO_VERSION;
    for (const char* list : {"commands", "settings", "collectives", "algorithms"})
        root[list] = ordered_json::array();
    for (const CLI::App* command : app.get_subcommands(nullptr))
        if (!command->get_group().empty()) root["commands"].push_back(describe(*command));
    for (const base::Setting& s : base::settings())
        root["settings"].push_back(
            {{"name", s.name}, {"choices", s.choices}, {"default", s.preset}, {"summary", s.summary}});
    for (const base::CollectiveFacts& row : base::kCollectiveTable)
        root["collectives"].push_back({{"name", row.name}, {"function", row.function}});
    for (const algorithms::Algorithm& a : algorithms::registry()) {
        ordered_json served = ordered_json::array();
        for (const base::CollectiveFacts& row : base::kCollectiveTable)
            if (algorithms::serves(a, row.collective)) served.push_back(row.name);
        root["algorithms"].push_back(
            {{"name", a.name}, {"summary", a.summary}, {"collectives", std::move(served)}});
    }
    return root.dump(2);
}

// Where PROG of `coco run [options] [--] PROG ARGS...` is in argv: all from there on is the program's own.
int first_of_command(int argc, char** argv) {
    int at = 2;
    while (at < argc && argv[at][0] == '-' && std::string_view(argv[at]) != "--") ++at;
    return at;
}

// For texts alone: where these words are missing the commands say so better than the parser would.
void mark_needed_words(CLI::App& app) {
    app.get_subcommand("run")->get_option("program")->required();
    app.get_subcommand("report")->get_option("files")->required();
}

}  // namespace
}  // namespace coco::tools

int main(int argc, char** argv) {
    using namespace coco::tools;
    CLI::App app("Makes MPI's data-moving collectives fast in programs that nobody recompiles.", "coco");
    app.set_version_flag("--version", "coco " COCO_VERSION);
    app.require_subcommand(1);
    app.failure_message([](const CLI::App*, const CLI::Error& error) {
        return "coco: error: " + std::string(error.what()) + "\n";
    });

    // What follows is the program's own: it is taken off the line before that is read, and these names are
    // for the help.
    CLI::App* run_command = app.add_subcommand("run", "run a program with libcoco");
    std::string program;
    std::vector<std::string> arguments;
    run_command->add_option("program", program, "a file, or a command in PATH")->type_name("PROGRAM");
    run_command->add_option("arguments", arguments, "the program's own")->type_name("ARGUMENT");

    int status = 0;
    for (const AddCommand add : {add_info, add_doctor, add_env, add_report, add_tune}) add(app, status);

    app.add_flag_callback("--describe",
                          [&] {
                              mark_needed_words(app);
                              throw CLI::CallForVersion(description_of(app), 0);
                          })
        ->group("");

    bool running = argc > 1 && std::string_view(argv[1]) == "run";
    int end = running ? first_of_command(argc, argv) : argc;
    try {
        app.parse(end, argv);
    } catch (const CLI::ParseError& error) {
        // Below a launcher all ranks have the same words.
        const bool is_told_by_rank_0 = error.get_exit_code() != 0 && coco::os::launched_rank() > 0;
        mark_needed_words(app);
        return is_told_by_rank_0 || app.exit(error) != 0 ? 2 : 0;
    }
    if (running) {
        std::vector<std::string> command(argv + end, argv + argc);
        if (!command.empty() && command.front() == "--") command.erase(command.begin());
        if (!command.empty()) return run(command);
        return tell_error("run: which program?");
    }
    return status;
}
