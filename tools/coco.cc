// SPDX-License-Identifier: BSD-3-Clause
//
// The `coco` command: run a program with libcoco, tell about machine and policy.
#include <CLI/CLI.hpp>
#include <iostream>
#include <string_view>

#include "tools/info.h"
#include "tools/launch.h"

namespace {

// Where PROG of `coco run [options] [--] PROG ARGS...` is in argv: all from there on is the program's own.
int first_of_command(int argc, char** argv) {
    int at = 2;
    while (at < argc && argv[at][0] == '-' && std::string_view(argv[at]) != "--") ++at;
    return at;
}

}  // namespace

int main(int argc, char** argv) {
    using namespace coco::tools;
    CLI::App app("Makes MPI collectives on one node fast.", "coco");
    app.set_version_flag("--version", "coco " COCO_VERSION);
    app.require_subcommand(1);

    app.add_subcommand("run", "run a program with libcoco: coco run PROG ARGS...");

    CLI::App* info_command = app.add_subcommand("info", "MPI libraries, machine, settings and policy");
    std::string program;
    info_command->add_option("program", program, "tell of the MPI library that this program uses");
    std::vector<std::string> asked;
    Question question;
    bool algorithms = false, markdown = false;
    info_command->add_option("--explain", asked, "COLLECTIVE RANKS BLOCK_BYTES: which rule applies, and why")
        ->expected(3);
    info_command->add_option("--nodes", question.nodes, "nodes, for --explain")
        ->check(CLI::Range(1, 1 << 20));
    info_command
        ->add_option("--degree", question.degree,
                     "for --explain of neighbours: edges from a rank to other nodes, the mean")
        ->check(CLI::NonNegativeNumber);
    info_command->add_option("--calls", question.calls, "for --explain: which call on the communicator it is")
        ->check(CLI::PositiveNumber);
    info_command->add_flag("--algorithms", algorithms, "list the algorithms");
    info_command->add_flag("--settings-markdown", markdown, "the environment variables as a table");

    bool running = argc > 1 && std::string_view(argv[1]) == "run";
    int end = running ? first_of_command(argc, argv) : argc;
    try {
        app.parse(end, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    if (running) {
        std::vector<std::string> command(argv + end, argv + argc);
        if (!command.empty() && command.front() == "--") command.erase(command.begin());
        if (!command.empty()) return run(command);
        std::cerr << "coco: error: run: which program?\n";
        return 2;
    }
    if (algorithms) return list_algorithms();
    if (markdown) return settings_markdown();
    if (asked.empty()) return info(program);
    question.collective = asked[0];
    question.ranks = asked[1];
    question.block = asked[2];
    return explain(question);
}
