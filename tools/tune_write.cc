// SPDX-License-Identifier: BSD-3-Clause
#include "tools/tune_write.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/env.h"
#include "base/one_line.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

using policy::Rule;

std::string shape_text(const TuneReport& report) {
    const policy::Facts& facts = report.facts;
    return std::to_string(report.ranks) + " ranks on " + std::to_string(facts.nodes) +
           (facts.nodes == 1 ? " node" : " nodes") + " with " + std::to_string(facts.domains) +
           (facts.domains == 1 ? " NUMA domain" : " NUMA domains") +
           (facts.crowded ? ", more ranks than CPUs" : "");
}

// Whether no call comes to this rule, as new ones take all of them. (What is tuned for one shape has sizes
// without gaps.)
bool is_covered(const Rule& rule, const std::vector<Rule>& rules) {
    policy::Range blocks{UINT64_MAX, 0};
    for (const Rule& tuned : rules) {
        if (tuned.collective != rule.collective || tuned.nodes != rule.nodes || tuned.ranks != rule.ranks ||
            tuned.domains != rule.domains || tuned.crowded != rule.crowded || tuned.degree != rule.degree ||
            tuned.calls != policy::Range{})
            continue;
        blocks = {std::min(blocks.first, tuned.block.first), std::max(blocks.last, tuned.block.last)};
    }
    return blocks.first <= rule.block.first && rule.block.last <= blocks.last;
}

}  // namespace

std::string policy_text(const TuneReport& report, const Tuned& tuned, const policy::Policy& before) {
    std::ostringstream out;
    out << "# Written by coco tune, libcoco " COCO_VERSION ", on " << report.date << ", for "
        << shape_text(report) << ".\n# " << report.mpi << "\n# " << report.machine << '\n';
    if (!report.is_complete)
        out << "# Incomplete: " << report.cells.size() << " of " << report.planned_cells
            << " cells were measured.\n";
    std::vector<Rule> own;  // of the policy before
    bool goes_on = false;
    for (const Rule& rule : before.rules)
        if (rule.source == policy::kBuiltIn)
            goes_on = true;
        else if (!is_covered(rule, tuned.rules))
            own.push_back(rule);
    if (goes_on) out << "\notherwise = \"" << policy::kBuiltIn << "\"\n";
    out << policy::toml_of(tuned.rules);
    if (!own.empty()) out << "\n# From " << base::one_line(before.source) << ".\n" << policy::toml_of(own);
    return out.str();
}

namespace {

using nlohmann::ordered_json;

ordered_json json_of(const Figure& figure) {
    return {{"name", policy::text_of(figure.choice)},
            {"samples", figure.samples},
            {"median_ns", std::llround(figure.median_ns)},
            {"low_ns", std::llround(figure.low_ns)},
            {"high_ns", std::llround(figure.high_ns)}};
}

ordered_json json_of(const TunedCell& cell, const Tuned& tuned) {
    ordered_json candidates = ordered_json::array();
    for (const Figure& figure : cell.candidates) candidates.push_back(json_of(figure));
    return {{"collective", base::name_of(cell.collective)},
            {"block_bytes", cell.block_bytes},
            {"buffers", cell.is_cold ? "cold" : "warm"},
            {"degree", cell.degree ? ordered_json(*cell.degree) : ordered_json(nullptr)},
            {"candidates", std::move(candidates)},
            {"chosen", policy::text_of(tuned.chosen(cell.collective, cell.block_bytes))}};
}

}  // namespace

std::string json_text(const TuneReport& report, const Tuned& tuned) {
    ordered_json cells = ordered_json::array();
    for (const TunedCell& cell : report.cells) cells.push_back(json_of(cell, tuned));
    const ordered_json root = {{"kind", "coco tune"},
                               {"libcoco", COCO_VERSION},
                               {"mpi", report.mpi},
                               {"machine", report.machine},
                               {"date", report.date},
                               {"nodes", report.facts.nodes},
                               {"ranks_per_node", report.facts.ranks_per_node},
                               {"domains", report.facts.domains},
                               {"crowded", report.facts.crowded},
                               {"ranks", report.ranks},
                               {"is_complete", report.is_complete},
                               {"cells", std::move(cells)}};
    return root.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

namespace {

// How many times as fast as the MPI library's own function a choice was, over some sizes.
struct Gain {
    double log_sum = 0, least = kUnknown, most = 0;
    int sizes = 0;

    void add(double times) {
        log_sum += std::log(times);
        least = std::min(least, times);
        most = std::max(most, times);
        ++sizes;
    }
    std::string text() const {
        char text[64];
        if (sizes == 0) return "not compared";
        std::snprintf(text, sizeof text, sizes == 1 ? "%.2f" : "%.2f (%.2f to %.2f)",
                      std::exp(log_sum / sizes), least, most);
        return text;
    }
};

std::vector<std::string> row_of(const CostTable& table, const Group& group, const Stretch& stretch) {
    const std::size_t first = stretch.first;
    std::vector<std::string> names;
    Gain gain;
    for (const Costs& costs : group.members(table)) {
        names.emplace_back(base::name_of(costs.collective));
        for (std::size_t s = first; s < first + stretch.columns; ++s)
            // The MPI library's own function is candidate 0.
            if (const std::vector<double>& ns = costs.times_ns[s]; ns[0] != kUnknown)
                gain.add(ns[0] / ns[stretch.candidate]);
    }
    const std::vector<std::uint64_t>& sizes = table.collectives[group.first].sizes;
    std::string blocks = base::bytes_text(sizes[first]);
    if (stretch.columns > 1) blocks += " to " + base::bytes_text(sizes[first + stretch.columns - 1]);
    return {joined(names), blocks, policy::text_of(table.candidates[stretch.candidate]), gain.text()};
}

}  // namespace

std::string table_text(const TuneReport& report, const Tuned& tuned) {
    std::vector<std::vector<std::string>> rows = {
        {"collective", "blocks", "choice", "times as fast as mpi, warm"}};
    for (const Group& group : tuned.groups)
        for (const Stretch& stretch : group.stretches) rows.push_back(row_of(tuned.costs, group, stretch));
    return shape_text(report) + ", " + report.mpi + "\n" + aligned(rows);
}

std::string report_path(std::string_view policy_path) {
    constexpr std::string_view kEnd = ".toml";
    return std::string(policy_path.substr(0, policy_path.size() - kEnd.size())) + ".json";
}

namespace {

std::string part_of(const std::string& path) { return path + "." + std::to_string(getpid()) + ".part"; }

bool refuse(const std::string& path, std::string& why) {
    why = path + ": cannot be written: " + std::strerror(errno);
    return false;
}

}  // namespace

bool write_whole(const std::string& path, std::string_view text, std::string& why) {
    const std::string part = part_of(path);
    std::ofstream file(part, std::ios::binary);
    file << text;
    file.close();
    if (file && std::rename(part.c_str(), path.c_str()) == 0) return true;
    refuse(path, why);
    unlink(part.c_str());
    return false;
}

bool can_write(const std::string& path, std::string& why) {
    const std::string part = part_of(path);
    const bool can = std::ofstream(part).is_open();
    if (!can) return refuse(path, why);
    unlink(part.c_str());
    return true;
}

}  // namespace coco::tools
