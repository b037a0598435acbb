// SPDX-License-Identifier: BSD-3-Clause
//
// The report of `coco doctor`: the findings of all processes that report together, for people or as JSON
// (docs/doctor-schema.json). Findings that not all have made come with their ranks. Called by doctor.cc at
// the root. Thread safety: none. Fails: never.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/doctor_check.h"

namespace coco::tools {

struct RankOfHost {
    std::int64_t rank;  // -1: started by no launcher
    std::string host;   // its name
};

struct Entry {
    Finding finding;
    std::vector<std::int64_t> ranks;  // that have made the finding; empty: all
};

struct Report {
    std::vector<RankOfHost> ranks;
    std::vector<Entry> entries;
    std::uint64_t expected_ranks = 0;  // of the job; 0: unknown
};

// Adds findings of one rank, each behind other ranks' findings of the same check.
void add(Report& report, const std::vector<Finding>& findings, std::int64_t rank);
// Adds findings that concern all ranks, at the end.
void add_common(Report& report, const std::vector<Finding>& findings);
bool has_problem(const Report& report);
std::string for_people(const Report& report);
std::string as_json(const Report& report);

}  // namespace coco::tools
