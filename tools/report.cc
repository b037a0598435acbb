// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>

#include "tools/child.h"
#include "tools/commands.h"
#include "tools/launch.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

struct ReportWords {
    std::vector<std::string> files;
    std::string output;
};

// Goes on as the program in Python that makes the page; does not return when all is well. That program checks
// the files.
int report(const ReportWords& words) {
    if (words.files.empty()) return tell_error("report: which files? (coco report --help)");
    const std::string program =
        beside_this_command({"tools/report", std::filesystem::path("..") / COCO_DATADIR / "coco/report"});
    if (program.empty())
        return tell_error("report: its program is not beside this command; build it with scripts/build");
    // -B: no compiled copies beside the program, which may be root's.
    std::vector<std::string> command = {"python3", "-B", program};
    if (!words.output.empty()) command.insert(command.end(), {"-o", words.output});
    command.emplace_back("--");
    command.insert(command.end(), words.files.begin(), words.files.end());
    execvp(command[0].c_str(), as_arguments(command).data());
    return tell_error(std::string("report: python3 cannot be run: ") + std::strerror(errno) +
                      "; on Debian, install python3-matplotlib and python3-jinja2");
}

}  // namespace

void add_report(CLI::App& app, int& status) {
    CLI::App* command = app.add_subcommand(
        "report", "one HTML page with plots of what libcoco, coco tune or scripts/bench measured");
    auto words = std::make_shared<ReportWords>();
    command
        ->add_option("files", words->files,
                     "what COCO_STATS=FILE.json has written, reports of coco tune, output of scripts/bench; "
                     "any number")
        ->type_name("FILE");
    command
        ->add_option("-o", words->output, "the page; by default beside the first file, with .html at the end")
        ->type_name("FILE");
    command->callback([words, &status] { status = report(*words); });
}

}  // namespace coco::tools
