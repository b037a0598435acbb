// SPDX-License-Identifier: BSD-3-Clause
#include "tools/doctor_report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/one_line.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

constexpr const char* kLevels[] = {"ok", "note", "problem"};
constexpr int kFormat = 1;

const char* name_of(Level level) { return kLevels[static_cast<int>(level)]; }

// Behind the last entry of the same check, or at the end.
std::vector<Entry>::iterator place_of(std::vector<Entry>& entries, const std::string& check) {
    const auto last = std::find_if(entries.rbegin(), entries.rend(),
                                   [&](const Entry& e) { return e.finding.check == check; });
    return last == entries.rend() ? entries.end() : last.base();
}

std::set<std::string> hosts_of(const Report& report) {
    std::set<std::string> hosts;
    for (const RankOfHost& rank : report.ranks) hosts.insert(rank.host);
    return hosts;
}

bool is_of_all(const Report& report, const Entry& entry) {
    return entry.ranks.empty() || entry.ranks.size() == report.ranks.size();
}

// " [ranks 2-3 on h1]" where not all ranks have made the finding.
std::string where(const Report& report, const Entry& entry) {
    if (is_of_all(report, entry)) return {};
    std::map<std::string, std::vector<std::int64_t>> by_host;
    for (const RankOfHost& rank : report.ranks)
        if (std::ranges::find(entry.ranks, rank.rank) != entry.ranks.end())
            by_host[rank.host].push_back(rank.rank);
    std::vector<std::string> parts;
    const bool is_one_host = hosts_of(report).size() == 1;
    for (const auto& [host, ranks] : by_host)
        parts.push_back(numbered("rank", ranks) + (is_one_host ? "" : " on " + host));
    return " [" + joined(parts) + "]";
}

std::size_t count(const Report& report, Level level) {
    return static_cast<std::size_t>(
        std::ranges::count_if(report.entries, [&](const Entry& e) { return e.finding.level == level; }));
}

std::string verdict(const Report& report) {
    const std::size_t problems = count(report, Level::problem), notes = count(report, Level::note);
    const char* works = problems != 0 ? "does not work here, or not everywhere"
                        : notes != 0  ? "works here, and could do better"
                                      : "works here";
    return filled({counted(problems, "problem"), counted(notes, "note"), works}, "{}, {}: libcoco {}\n");
}

}  // namespace

void add(Report& report, const std::vector<Finding>& findings, std::int64_t rank) {
    for (const Finding& finding : findings) {
        auto same = std::ranges::find(report.entries, finding, &Entry::finding);
        if (same == report.entries.end())
            same = report.entries.insert(place_of(report.entries, finding.check), {finding, {}});
        same->ranks.push_back(rank);
    }
}

void add_common(Report& report, const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) report.entries.push_back({finding, {}});
}

bool has_problem(const Report& report) { return count(report, Level::problem) != 0; }

std::string for_people(const Report& report) {
    std::vector<std::vector<std::string>> rows;
    for (const Entry& entry : report.entries) {
        const Finding& finding = entry.finding;
        std::string level = name_of(finding.level);
        level.resize(std::string_view(name_of(Level::problem)).size(), ' ');
        rows.push_back(
            {level, base::one_line(finding.check), base::one_line(finding.what + where(report, entry))});
        if (!finding.remedy.empty()) rows.push_back({"", "", "-> " + base::one_line(finding.remedy)});
    }
    return "coco doctor, libcoco " COCO_VERSION "\n" + aligned(rows) + verdict(report);
}

std::string as_json(const Report& report) {
    using nlohmann::ordered_json;
    ordered_json root = {{"format", kFormat}, {"version", COCO_VERSION}, {"works", !has_problem(report)}};
    root["expected_ranks"] =
        report.expected_ranks == 0 ? ordered_json(nullptr) : ordered_json(report.expected_ranks);
    root["hosts"] = ordered_json::array();
    for (const std::string& host : hosts_of(report)) {
        ordered_json ranks = ordered_json::array();
        for (const RankOfHost& rank : report.ranks)
            if (rank.host == host && rank.rank >= 0) ranks.push_back(rank.rank);
        root["hosts"].push_back({{"name", host}, {"ranks", std::move(ranks)}});
    }
    root["findings"] = ordered_json::array();
    for (const Entry& entry : report.entries) {
        const Finding& finding = entry.finding;
        ordered_json row = {
            {"check", finding.check}, {"level", name_of(finding.level)}, {"what", finding.what}};
        row["remedy"] = finding.remedy.empty() ? ordered_json(nullptr) : ordered_json(finding.remedy);
        row["ranks"] = is_of_all(report, entry) ? ordered_json(nullptr) : ordered_json(entry.ranks);
        root["findings"].push_back(std::move(row));
    }
    return root.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace coco::tools
