// SPDX-License-Identifier: BSD-3-Clause
//
// The subcommands of `coco`. Each function adds one to the command line: its words, and the work, which runs
// when the line has been read and leaves the command's exit status. Called by coco.cc. Thread safety: none;
// called once. Fails: the work prints a line that begins with "coco: error: " and leaves a status other than
// 0.
#pragma once

namespace CLI {
class App;
}

namespace coco::tools {

// status: outlives the reading of the line.
using AddCommand = void (*)(CLI::App& app, int& status);
void add_doctor(CLI::App& app, int& status);
void add_env(CLI::App& app, int& status);
void add_info(CLI::App& app, int& status);
void add_report(CLI::App& app, int& status);
void add_tune(CLI::App& app, int& status);

}  // namespace coco::tools
