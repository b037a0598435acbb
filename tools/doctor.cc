// SPDX-License-Identifier: BSD-3-Clause
//
// `coco doctor`: what could keep libcoco from working or gaining here. Under a launcher the processes report
// together. Each puts the questions to itself, tells the root the answers and tries to reach its mates'
// memory, and the root compares.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <climits>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <set>

#include "base/env.h"
#include "base/hash.h"
#include "os/probe.h"
#include "policy/learned.h"
#include "settings/settings.h"
#include "tools/commands.h"
#include "tools/doctor_check.h"
#include "tools/doctor_company.h"
#include "tools/doctor_report.h"
#include "tools/doctor_statement.h"
#include "tools/launch.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

// What the root has heard, and why it has not heard of other hosts.
struct Heard {
    std::vector<Statement> statements;
    std::vector<Tried> tried;
    std::string trouble;
};

Answers ask_mpi_of_all(const Heard& heard) {
    if (heard.trouble.empty()) return {};
    return problem({heard.trouble},
                   "{} -> start with the mpiexec of this MPI library, or with srun and its MPI; in a batch "
                   "script not without it");
}

Answers ask_processes(const Heard& heard) {
    std::set<std::string> hosts;
    for (const Statement& statement : heard.statements) hosts.insert(statement.offer.host);
    const bool has_mates = hosts.size() < heard.statements.size();
    return has_mates ? answers_of_ranks(heard.tried) : answers_of_child();
}

constexpr Check<const Heard> kMpiOfAll = {"MPI of all", ask_mpi_of_all};
constexpr Check<const Heard> kProcesses = {"processes", ask_processes};

// Those texts that say something of the kind, by rank.
template <class Told>
std::vector<Told> read_all(const Company::Texts& texts, std::optional<Told> (*read)(const std::string&)) {
    std::vector<Told> all;
    for (const std::string& text : texts)
        if (std::optional<Told> told = read(text)) all.push_back(std::move(*told));
    std::ranges::sort(all, {}, &Told::rank);
    return all;
}

std::vector<Offer> offers_of(const std::vector<Statement>& statements) {
    std::vector<Offer> offers;
    for (const Statement& statement : statements) offers.push_back(statement.offer);
    return offers;
}

std::string hash_of_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    base::Hash hash;
    for (std::istreambuf_iterator<char> at(in), end; at != end; ++at)
        hash.add(std::uint64_t{static_cast<unsigned char>(*at)});
    constexpr int kDigits = 17;
    char text[kDigits];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash.value()));
    return text;
}

std::map<std::string, std::string> common_settings() {
    std::map<std::string, std::string> found;
    for (const base::Setting& setting : base::settings())
        if (const std::string value(base::env(setting.name));
            !value.empty() && !settings::is_own_affair(setting.name))
            found[setting.name] = value;
    settings::Settings settings;
    if (!base::env("COCO_POLICY").empty() && !settings::is_switched_off() && !settings::read(settings))
        found["the rules of COCO_POLICY"] = policy::hash_of(settings.policy.rules);
    return found;
}

Statement own_statement(const Offer& offer, const std::string& mpi_version, const Findings& findings) {
    const std::string library = library_file();
    char host[HOST_NAME_MAX + 1] = {};
    gethostname(host, sizeof host - 1);
    Statement own{.rank = offer.rank,
                  .host = host,
                  .namespaces = {},
                  .user = static_cast<std::int64_t>(getuid()),
                  .cpus = own_cpus(),
                  .cpu_quota = os::usable_cpus().quota,
                  .online_cpus = sysconf(_SC_NPROCESSORS_ONLN),
                  .libcoco = "version " COCO_VERSION,
                  .mpi = mpi_version,
                  .settings = common_settings(),
                  .offer = offer,
                  .findings = findings.all()};
    if (!library.empty()) own.libcoco += filled({hash_of_file(library)}, " ({})");
    for (const char* kind : {"pid", "user", "ipc", "net"})
        if (const std::string name = own_namespace(kind); !name.empty()) own.namespaces[kind] = name;
    return own;
}

// At the root.
Report report_of(const Heard& heard, const Launch& launch) {
    Report report;
    report.expected_ranks = launch.ranks;
    for (const Statement& statement : heard.statements) {
        report.ranks.push_back({statement.rank, statement.host});
        add(report, statement.findings, statement.rank);
    }
    Findings common;
    common.ask(kMpiOfAll, heard);
    if (launch.rank >= 0) compare(heard.statements, launch.ranks, common);
    common.ask(kProcesses, heard);
    add_common(report, common.all());
    return report;
}

int lose_root() {
    tell_error("doctor: the process that collects the findings is gone");
    return 1;
}

struct DoctorWords {
    std::string program;
    bool json = false, no_mpi = false, what_is_preloaded = false;
    std::vector<std::string> messages;
};

int examine(const DoctorWords& words) {
    const Launch launch;
    // Some launchers end the other processes of a job when one has found a problem and says so by its status.
    if (launch.rank >= 0) signal(SIGTERM, SIG_IGN);
    Patient patient(words.program);
    Findings findings;
    for (const OwnChecks& checks : {preload_checks(), program_checks(), settings_checks(), machine_checks()})
        for (const OwnCheck& check : checks) findings.ask(check, patient);
    Heard heard;
    const auto company = meet(launch, patient.mpi.file, !words.no_mpi, heard.trouble);
    Offered offered(launch.rank);
    const Statement own = own_statement(offered.offer(), patient.mpi.version, findings);
    const auto offers_text = company->confer(text_of(own), [&](const Company::Texts& texts) {
        heard.statements = read_all(texts, read_statement);
        return text_of(offers_of(heard.statements));
    });
    if (!offers_text) return lose_root();
    const std::vector<Offer> offers = read_offers(*offers_text);
    const std::optional<Tried> tried = try_mates(*company, offered, offers);
    if (!tried) return lose_root();
    const auto told = company->confer(text_of(*tried), [&](const Company::Texts& texts) {
        heard.tried = read_all(texts, read_tried);
        const Report report = report_of(heard, launch);
        return (has_problem(report) ? "1" : "0") + (words.json ? as_json(report) : for_people(report));
    });
    if (!told || told->empty()) return lose_root();
    // The lowest rank prints. Nobody ends before it has, as some launchers then end the others.
    if (!offers.empty() && offers.front().rank == launch.rank) std::cout << told->substr(1) << std::flush;
    company->confer("done", [](const Company::Texts&) { return ""; });
    return told->front() == '1' ? 1 : 0;
}

int run_doctor(const DoctorWords& words) {
    if (words.what_is_preloaded) return tell_what_is_preloaded(), 0;
    if (words.messages.empty()) return examine(words);
    return carry_messages(words.messages[1], std::atoi(words.messages[0].c_str()));
}

}  // namespace

void add_doctor(CLI::App& app, int& status) {
    CLI::App* command = app.add_subcommand(
        "doctor", "what could keep libcoco from working or gaining here; also under mpiexec, on all ranks");
    auto words = std::make_shared<DoctorWords>();
    command->add_option("program", words->program, "look at this program, too")->type_name("PROGRAM");
    command->add_flag("--json", words->json, "for machines (docs/doctor-schema.json)");
    command->add_flag("--no-mpi", words->no_mpi,
                      "start no MPI library to hear of other hosts: each host reports for itself");
    // The command starts itself with these options; "" hides them.
    command->add_flag("--what-is-preloaded", words->what_is_preloaded)->group("");
    command->add_option("--carry-messages", words->messages)->expected(2)->group("");
    command->callback([words, &status] { status = run_doctor(*words); });
}

}  // namespace coco::tools
