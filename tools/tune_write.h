// SPDX-License-Identifier: BSD-3-Clause
//
// What `coco tune` leaves: the policy file, the report (docs/tune-schema.json) and a table for the terminal.
// Called by tune_session.cc on rank 0. Thread safety: pure functions, but for the file system. Fails:
// write_whole() says why.
#pragma once
#include <string>
#include <string_view>

#include "tools/tune_rules.h"

namespace coco::tools {

// before: the policy from which tuning began; its rules follow, for all that was not measured.
std::string policy_text(const TuneReport& report, const Tuned& tuned, const policy::Policy& before);
std::string json_text(const TuneReport& report, const Tuned& tuned);
// A line for each rule: what was chosen, and how it compares with the MPI library's own function.
std::string table_text(const TuneReport& report, const Tuned& tuned);

// Where the report goes, beside the policy file.
std::string report_path(std::string_view policy_path);
// Replaces a file, whole or not at all. Returns: false: nothing was written, for the reason in `why`.
bool write_whole(const std::string& path, std::string_view text, std::string& why);
// Whether write_whole() may work: tries to make a file beside it.
bool can_write(const std::string& path, std::string& why);

}  // namespace coco::tools
