// SPDX-License-Identifier: BSD-3-Clause
//
// What the ranks of a job have told, side by side.
#include <algorithm>
#include <functional>
#include <set>

#include "comm/limits.h"
#include "tools/doctor_checks.h"
#include "tools/doctor_statement.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

using Selection = std::vector<const Statement*>;
using ByText = std::map<std::string, std::vector<std::int64_t>>;

// The ranks that one kernel runs, by the lowest of them.
std::vector<Selection> by_host(const std::vector<Statement>& statements) {
    std::vector<Selection> hosts;
    for (const Statement& statement : statements) {
        auto same = std::ranges::find_if(
            hosts, [&](const Selection& g) { return g[0]->offer.host == statement.offer.host; });
        if (same == hosts.end()) same = hosts.insert(hosts.end(), Selection{});
        same->push_back(&statement);
    }
    return hosts;
}

std::string ranks_of(const std::vector<std::int64_t>& ranks) {
    return (ranks.size() == 1 ? "rank " : "ranks ") + numbers(ranks);
}

std::vector<std::int64_t> numbers_of(const Selection& group) {
    std::vector<std::int64_t> ranks;
    for (const Statement* statement : group) ranks.push_back(statement->rank);
    return ranks;
}

template <class Statements>
ByText by_text(const Statements& statements, const std::function<std::string(const Statement&)>& text) {
    ByText found;
    for (const auto& statement : statements) {
        const Statement* at = nullptr;
        if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(statement)>>)
            at = statement;
        else
            at = &statement;
        found[text(*at)].push_back(at->rank);
    }
    return found;
}

// "a on ranks 0-1, b on rank 2"
std::string side_by_side(const ByText& found) {
    std::vector<std::string> parts;
    for (const auto& [text, ranks] : found)
        parts.push_back((text.empty() ? "unset" : text) + " on " + ranks_of(ranks));
    return joined(parts);
}

void compare_number(const std::vector<Statement>& statements, std::uint64_t expected, Findings& findings) {
    std::vector<std::string> parts;
    bool shares = false;
    for (const Selection& group : by_host(statements)) {
        parts.push_back(group[0]->host + " (" + numbers(numbers_of(group)) + ")");
        shares |= group.size() > 1;
        if (group.size() > static_cast<std::size_t>(comm::kMatesMost))
            findings.problem("ranks",
                             group[0]->host + " has " + std::to_string(group.size()) +
                                 " ranks: communicators with more than " + std::to_string(comm::kMatesMost) +
                                 " on a node are left to the MPI library",
                             "start fewer ranks on a host, with threads");
    }
    const std::string what = std::to_string(statements.size()) +
                             (statements.size() == 1 ? " rank on " : " ranks on ") + joined(parts);
    if (expected != 0 && statements.size() < expected)
        findings.note("ranks", what + " answered, of " + std::to_string(expected),
                      "the others are on other hosts, in other containers, or have ended: each group makes a "
                      "report of its own");
    else if (statements.size() == 1)
        findings.note("ranks", what + ": calls of one rank are left to the MPI library", "start more ranks");
    else if (!shares)
        findings.note("ranks", what + ", one on each: libcoco gains where ranks share a host",
                      "start more ranks on each host");
    else
        findings.ok("ranks", what);
}

void compare_versions(const std::vector<Statement>& statements, Findings& findings) {
    const ByText libraries =
        by_text(statements, [](const Statement& statement) { return statement.libcoco; });
    if (libraries.size() > 1)
        findings.problem("same libcoco", "ranks have different libraries: " + side_by_side(libraries),
                         "install one build of libcoco on all hosts");
    else
        findings.ok("same libcoco", "on all ranks");
    const ByText mpis = by_text(statements, [](const Statement& statement) { return statement.mpi; });
    if (mpis.size() > 1)
        findings.problem("same MPI", "ranks have different MPI libraries: " + side_by_side(mpis),
                         "use one MPI library on all hosts");
    else
        findings.ok("same MPI", "on all ranks");
}

void compare_settings(const std::vector<Statement>& statements, Findings& findings) {
    std::set<std::string> names;
    for (const Statement& statement : statements)
        for (const auto& [name, value] : statement.settings) names.insert(name);
    bool differ = false;
    for (const std::string& name : names) {
        const ByText values = by_text(statements, [&](const Statement& statement) {
            return statement.settings.contains(name) ? statement.settings.at(name) : "";
        });
        if (values.size() == 1) continue;
        differ = true;
        findings.problem(
            "same settings",
            name + " differs, and all calls are left to the MPI library: " + side_by_side(values),
            "set it on all ranks alike: mpiexec -genv (MPICH), -x (Open MPI), srun --export");
    }
    if (!differ) findings.ok("same settings", "on all ranks");
}

// What must be one for the ranks of a host.
void compare_places(const Selection& host, Findings& findings) {
    const ByText users =
        by_text(host, [](const Statement& statement) { return std::to_string(statement.user); });
    if (users.size() > 1)
        findings.problem("containers",
                         host[0]->host + " runs ranks as different users: " + side_by_side(users),
                         "run all ranks of a host as one user");
    for (const char* kind : {"pid", "user", "ipc", "net"}) {
        const ByText spaces = by_text(host, [&](const Statement& statement) {
            return statement.namespaces.contains(kind) ? statement.namespaces.at(kind) : "unknown";
        });
        if (spaces.size() == 1) continue;
        const std::string what =
            host[0]->host + " runs ranks in different " + kind + " namespaces: " + side_by_side(spaces);
        if (std::string_view(kind) == "pid" || std::string_view(kind) == "user")
            findings.problem("containers", what + ": such ranks count as different nodes",
                             "run all ranks of a host in one container, or without these namespaces");
        else
            findings.note("containers",
                          what + ": libcoco does not mind, the MPI library's own shared memory may",
                          "run all ranks of a host in one container");
    }
}

// The CPUs that ranks share, of which the tightest control group may grant less.
std::size_t cpus_of(const Selection& group) {
    std::set<std::int64_t> cpus;
    std::int64_t quota = 0;
    for (const Statement* statement : group) {
        cpus.insert(statement->cpus.begin(), statement->cpus.end());
        if (statement->cpu_quota != 0)
            quota = quota == 0 ? statement->cpu_quota : std::min(quota, statement->cpu_quota);
    }
    return quota != 0 ? std::min(cpus.size(), static_cast<std::size_t>(quota)) : cpus.size();
}

void compare_binding(const Selection& host, Findings& findings) {
    std::map<std::vector<std::int64_t>, Selection> bound;
    for (const Statement* statement : host) bound[statement->cpus].push_back(statement);
    for (const auto& [cpus, group] : bound)
        if (group.size() > cpus.size())
            findings.note("crowd",
                          host[0]->host + " binds " + ranks_of(numbers_of(group)) + " to " +
                              (cpus.size() == 1 ? "CPU " : "CPUs ") + numbers(cpus) + " of " +
                              std::to_string(host[0]->online_cpus) +
                              ": they take turns while other CPUs rest",
                          "bind each rank to a core of its own: mpiexec --bind-to core --map-by core (Open "
                          "MPI), -bind-to core (MPICH), srun --cpu-bind=cores");
}

void compare_crowd(const Selection& host, Findings& findings) {
    const std::size_t cpus = cpus_of(host);
    const bool has_room = host.size() <= static_cast<std::size_t>(host[0]->online_cpus);
    const std::size_t before = findings.all().size();
    if (has_room) compare_binding(host, findings);
    if (findings.all().size() != before) return;
    if (host.size() > cpus)
        findings.note("crowd",
                      host[0]->host + " has " + std::to_string(host.size()) + " ranks on " +
                          std::to_string(cpus) + (cpus == 1 ? " CPU" : " CPUs") +
                          ": a rank that waits sleeps, and calls take longer",
                      "start at most " + std::to_string(cpus) + (cpus == 1 ? " rank" : " ranks") +
                          " there, or have the scheduler grant more CPUs");
}

}  // namespace

void compare(const std::vector<Statement>& statements, std::uint64_t expected_ranks, Findings& findings) {
    compare_number(statements, expected_ranks, findings);
    compare_versions(statements, findings);
    compare_settings(statements, findings);
    for (const Selection& group : by_host(statements)) {
        compare_places(group, findings);
        compare_crowd(group, findings);
    }
    auto is_found = [&](std::string_view check) {
        return std::ranges::find(findings.all(), check, &Finding::check) != findings.all().end();
    };
    if (!is_found("containers")) findings.ok("containers", "no rank is kept from the others of its host");
    if (!is_found("crowd")) findings.ok("crowd", "each rank can have a CPU of its own");
}

}  // namespace coco::tools
