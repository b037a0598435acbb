// SPDX-License-Identifier: BSD-3-Clause
//
// The command line and the tables of libcoco as JSON, of which scripts/make_manual makes manual pages and
// completions: each subcommand with its options, the settings, the collectives and the algorithms. Called by
// coco.cc. Thread safety: none. Fails: no.
#pragma once
#include <string>

namespace CLI {
class App;
}

namespace coco::tools {

std::string description_of(const CLI::App& app);

}  // namespace coco::tools
