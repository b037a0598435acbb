// SPDX-License-Identifier: BSD-3-Clause
//
// The questions about all ranks of a job and about the ranks of one host, whose statements lie side by side.
#include <functional>
#include <set>

#include "comm/limits.h"
#include "tools/doctor_statement.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

using Selection = std::vector<const Statement*>;

struct Job {
    std::uint64_t expected_ranks;
    Selection ranks;
    std::vector<Selection> hosts;  // the ranks that one kernel runs, by the lowest of them
};

Job job_of(const std::vector<Statement>& statements, std::uint64_t expected_ranks) {
    Job job{expected_ranks, {}, {}};
    for (const Statement& statement : statements) {
        job.ranks.push_back(&statement);
        auto same = std::ranges::find_if(
            job.hosts, [&](const Selection& host) { return host[0]->offer.host == statement.offer.host; });
        if (same == job.hosts.end()) same = job.hosts.insert(job.hosts.end(), Selection{});
        same->push_back(&statement);
    }
    return job;
}

std::vector<std::int64_t> numbers_of(const Selection& group) {
    std::vector<std::int64_t> ranks;
    for (const Statement* statement : group) ranks.push_back(statement->rank);
    return ranks;
}

// "a on ranks 0-1, b on rank 2"; empty: the text is the same on all ranks.
template <class Projection>
std::string differing(const Selection& ranks, Projection text) {
    std::map<std::string, Selection> found;
    for (const Statement* statement : ranks) found[std::invoke(text, *statement)].push_back(statement);
    std::vector<std::string> parts;
    for (const auto& [value, group] : found)
        parts.push_back(
            filled({value.empty() ? "unset" : value, numbered("rank", numbers_of(group))}, "{} on {}"));
    return parts.size() > 1 ? joined(parts) : "";
}

Answers answers_of_number(const Job& job) {
    std::vector<std::string> parts;
    for (const Selection& host : job.hosts)
        parts.push_back(filled({host[0]->host, numbers(numbers_of(host))}, "{} ({})"));
    const std::string what = filled({counted(job.ranks.size(), "rank"), joined(parts)}, "{} on {}");
    if (job.ranks.size() < job.expected_ranks)
        return note({what, job.expected_ranks},
                    "{} answered, of {} -> the others are on other hosts, in other containers, or have "
                    "ended: each group makes a report of its own");
    if (job.ranks.size() == 1)
        return note({what}, "{}: calls of one rank are left to the MPI library -> start more ranks");
    if (job.ranks.size() == job.hosts.size())
        return note(
            {what},
            "{}, one on each: libcoco gains where ranks share a host -> start more ranks on each host");
    return ok(what);
}

Answers ask_ranks(const Job& job) {
    Answers answers;
    for (const Selection& host : job.hosts)
        if (host.size() > static_cast<std::size_t>(comm::kMatesMost))
            answers += problem({host[0]->host, host.size(), comm::kMatesMost},
                               "{} has {} ranks: communicators with more than {} on a node are left to "
                               "the MPI library -> start fewer ranks on a host, with threads");
    answers += answers_of_number(job);
    return answers;
}

Answers ask_same_libcoco(const Job& job) {
    const std::string all = differing(job.ranks, &Statement::libcoco);
    if (all.empty()) return {};
    return problem({all}, "ranks have different libraries: {} -> install one build of libcoco on all hosts");
}

Answers ask_same_mpi(const Job& job) {
    const std::string all = differing(job.ranks, &Statement::mpi);
    if (all.empty()) return {};
    return problem({all}, "ranks have different MPI libraries: {} -> use one MPI library on all hosts");
}

Answers ask_same_settings(const Job& job) {
    std::set<std::string> names;
    for (const Statement* rank : job.ranks)
        for (const auto& [name, value] : rank->settings) names.insert(name);
    Answers answers;
    for (const std::string& name : names) {
        const std::string all = differing(job.ranks, [&](const Statement& rank) {
            return rank.settings.contains(name) ? rank.settings.at(name) : "";
        });
        if (!all.empty())
            answers += problem({name, all},
                               "{} differs, and all calls are left to the MPI library: {} -> set it on "
                               "all ranks alike: mpiexec -genv (MPICH), -x (Open MPI), srun --export");
    }
    return answers;
}

// What must be one for the ranks of a host.
Answers ask_containers(const Selection& host) {
    Answers answers;
    const std::string users =
        differing(host, [](const Statement& rank) { return std::to_string(rank.user); });
    if (!users.empty())
        answers = problem({host[0]->host, users},
                          "{} runs ranks as different users: {} -> run all ranks of a host as one user");
    for (const std::string kind : {"pid", "user", "ipc", "net"}) {
        const std::string spaces = differing(host, [&](const Statement& rank) {
            return rank.namespaces.contains(kind) ? rank.namespaces.at(kind) : "unknown";
        });
        if (spaces.empty()) continue;
        const std::string what =
            filled({host[0]->host, kind, spaces}, "{} runs ranks in different {} namespaces: {}");
        answers += kind == "pid" || kind == "user"
                       ? problem({what},
                                 "{}: such ranks count as different nodes -> run all ranks of a host in "
                                 "one container, or without these namespaces")
                       : note({what},
                              "{}: libcoco does not mind, the MPI library's own shared memory may -> "
                              "run all ranks of a host in one container");
    }
    return answers;
}

// How many CPUs ranks share, of which the tightest control group may grant less.
std::size_t shared_cpus(const Selection& host) {
    std::set<std::int64_t> cpus;
    std::int64_t quota = INT64_MAX;
    for (const Statement* rank : host) {
        cpus.insert(rank->cpus.begin(), rank->cpus.end());
        if (rank->cpu_quota != 0) quota = std::min(quota, rank->cpu_quota);
    }
    return std::min(cpus.size(), static_cast<std::size_t>(quota));
}

// Of ranks that are bound to the same CPUs.
Answers answers_of_binding(const Selection& host) {
    std::map<std::vector<std::int64_t>, Selection> bound;
    for (const Statement* rank : host) bound[rank->cpus].push_back(rank);
    Answers answers;
    for (const auto& [cpus, group] : bound)
        if (group.size() > cpus.size())
            answers += note({host[0]->host, numbered("rank", numbers_of(group)), numbered("CPU", cpus),
                             host[0]->online_cpus},
                            "{} binds {} to {} of {}: they take turns while other CPUs rest -> bind "
                            "each rank to a core of its own: mpiexec --bind-to core --map-by core (Open "
                            "MPI), -bind-to core (MPICH), srun --cpu-bind=cores");
    return answers;
}

Answers ask_crowd(const Selection& host) {
    const std::size_t cpus = shared_cpus(host);
    const bool has_room = host.size() <= static_cast<std::size_t>(host[0]->online_cpus);
    Answers answers = has_room ? answers_of_binding(host) : Answers();
    if (!answers.empty() || host.size() <= cpus) return answers;
    return note({host[0]->host, host.size(), counted(cpus, "CPU"), counted(cpus, "rank")},
                "{} has {} ranks on {}: a rank that waits sleeps, and calls take longer -> start at most {} "
                "there, or have the scheduler grant more CPUs");
}

constexpr Check<const Job> kJobChecks[] = {
    {"ranks", ask_ranks},
    {"same libcoco", ask_same_libcoco, "on all ranks"},
    {"same MPI", ask_same_mpi, "on all ranks"},
    {"same settings", ask_same_settings, "on all ranks"},
};
constexpr Check<const Selection> kHostChecks[] = {
    {"containers", ask_containers, "no rank is kept from the others of its host"},
    {"crowd", ask_crowd, "each rank can have a CPU of its own"},
};

}  // namespace

void compare(const std::vector<Statement>& statements, std::uint64_t expected_ranks, Findings& findings) {
    const Job job = job_of(statements, expected_ranks);
    for (const auto& check : kJobChecks) findings.ask(check, job);
    for (const Selection& host : job.hosts)
        for (const auto& check : kHostChecks) findings.add(check.name, check.ask(host));
    for (const auto& check : kHostChecks)
        if (!findings.has(check.name)) findings.add(check.name, ok(check.well));
}

}  // namespace coco::tools
