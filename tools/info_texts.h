// SPDX-License-Identifier: BSD-3-Clause
//
// The texts of `coco info`. Called by info.cc. Thread safety: none. Fails: no.
#pragma once
#include <string>

#include "settings/settings.h"

namespace coco::tools {

// Ten lines, and one for each MPI library beyond the first. program: whose MPI library to tell of; empty:
// those that the loader finds.
std::string in_brief(const settings::Settings& settings, const std::string& program);
std::string rules_as_table(const policy::Policy& policy);
std::string settings_as_table();
// For docs/environment.md.
std::string settings_as_markdown();

}  // namespace coco::tools
