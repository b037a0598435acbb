// SPDX-License-Identifier: BSD-3-Clause
//
// The report of `coco doctor`: the findings of all processes that report together, those that differ with their ranks; for
// people, or as JSON (docs/doctor-schema.json). Called by doctor.cc at the root. Thread safety: none. Fails: no.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/doctor_findings.h"

namespace coco::tools {

struct RankOfHost {
    std::int64_t rank;  // -1: started by no launcher
    std::string host;   // its name
};

// ranks: those that have found it; empty: all.
struct Entry {
    Finding finding;
    std::vector<std::int64_t> ranks;
};

struct Report {
    std::vector<RankOfHost> ranks;
    std::vector<Entry> entries;
    std::uint64_t expected_ranks = 0;  // of the job; 0: unknown
};

// Adds findings of one rank, where other ranks' findings of the same check are.
void add(Report& report, const std::vector<Finding>& findings, std::int64_t rank);
// Adds findings that concern all of them, at the end.
void add_common(Report& report, const std::vector<Finding>& findings);
bool has_problem(const Report& report);
std::string for_people(const Report& report);
std::string as_json(const Report& report);

}  // namespace coco::tools
