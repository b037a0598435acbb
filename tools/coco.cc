// SPDX-License-Identifier: BSD-3-Clause
//
// The `coco` command: run a program with libcoco, tell about machine and policy, tune a policy for a machine,
// make pages of what was measured.
#include <CLI/CLI.hpp>
#include <string_view>

#include "os/process.h"
#include "tools/commands.h"
#include "tools/describe.h"
#include "tools/launch.h"
#include "tools/words.h"

namespace {

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
