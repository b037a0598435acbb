// SPDX-License-Identifier: BSD-3-Clause
//
// `coco doctor`: what could keep libcoco from working or gaining here. Under a launcher the processes report together: each
// makes its checks, tells the root, tries to reach its mates' memory, and the root compares.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "tools/commands.h"
#include "tools/doctor_checks.h"
#include "tools/doctor_company.h"
#include "tools/doctor_mates.h"
#include "tools/doctor_report.h"
#include "tools/doctor_statement.h"
#include "tools/words.h"

namespace coco::tools {
namespace {

// The checks that each process makes alone. Returns: the MPI library, as far as it is known.
MpiFound check_alone(const std::string& program, Findings& findings) {
    check_library(findings);
    check_other_preloads(findings);
    check_program(program, findings);
    const MpiFound mpi = check_mpi(program, findings);
    check_allocators(program, findings);
    check_devices(program, findings);
    check_settings(findings);
    check_learned_rules(findings);
    check_shared_memory(findings);
    check_limits(program, findings);
    check_huge_pages(findings);
    check_kernel(findings);
    check_cpus(findings);
    check_domains(findings);
    check_memory_of_group(findings);
    check_container(findings);
    return mpi;
}

// Whether a company has all ranks of the job, as its root has counted. Called by all of them.
bool is_complete(Company& company, const Launch& launch) {
    const std::size_t ranks = company.gather("").size();
    return company.broadcast(ranks >= launch.ranks ? "1" : "0") == "1";
}

// Where all are on this host they meet without the MPI library. If some have not come, as those in other containers, all
// know it and ask the MPI library.
std::unique_ptr<Company> meet(const Launch& launch, const std::string& mpi_file, bool may_use_mpi,
                              std::string& trouble) {
    if (launch.rank < 0) return alone();
    std::unique_ptr<Company> host, job;
    if (launch.ranks == launch.node_ranks || launch.ranks == 0) host = meet_host(launch);
    if (host != nullptr && is_complete(*host, launch)) return host;
    if (host != nullptr && may_use_mpi && host->is_root())
        std::cerr << "coco doctor: not all ranks of this host have come, so MPI is asked for the others. If "
                     "it fails, it may end "
                     "the job: --no-mpi\n";
    if (may_use_mpi) job = meet_job(launch, mpi_file, trouble);
    if (job != nullptr) return job;
    return host != nullptr ? std::move(host) : meet_host(launch);
}

std::vector<Statement> statements_of(const std::vector<std::string>& texts) {
    std::vector<Statement> statements;
    for (const std::string& text : texts)
        if (std::optional<Statement> statement = read_statement(text))
            statements.push_back(std::move(*statement));
    std::ranges::sort(statements, {}, &Statement::rank);
    return statements;
}

std::vector<Offer> offers_of(const std::vector<Statement>& statements) {
    std::vector<Offer> offers;
    for (const Statement& statement : statements) offers.push_back(statement.offer);
    return offers;
}

// Tries to reach those of the same host, and once more by sockets if any rank of the company finds descriptors closed.
// Returns: at the root, what all have tried; nothing if the root is lost.
std::optional<std::vector<Tried>> try_mates(Company& company, Offered& offered,
                                            const std::vector<Offer>& offers) {
    std::vector<Offer> mates;
    std::ranges::copy_if(offers, std::back_inserter(mates), [&](const Offer& o) {
        return o.host == offered.offer().host && o.rank != offered.offer().rank;
    });
    std::vector<Reach> reaches;
    for (const Offer& mate : mates) reaches.push_back(try_mate(mate));
    const bool closed = std::ranges::any_of(reaches, is_closed);
    const std::vector<std::string> all_closed = company.gather(closed ? "1" : "0");
    const bool any = std::ranges::find(all_closed, "1") != all_closed.end();
    const std::optional<std::string> must_pass = company.broadcast(any ? "1" : "0");
    if (!must_pass) return std::nullopt;
    if (*must_pass == "1") {
        const std::vector<bool> came = offered.pass(mates);
        for (std::size_t i = 0; i < mates.size(); ++i) reaches[i].passed = is_closed(reaches[i]) && came[i];
    }
    std::erase_if(reaches, [](const Reach& r) { return r.open_error == 0 && r.read_error == 0; });
    std::vector<Tried> tried;
    for (const std::string& text : company.gather(text_of(Tried{offered.offer().rank, reaches})))
        if (std::optional<Tried> one = read_tried(text)) tried.push_back(std::move(*one));
    return tried;
}

bool has_mates(const std::vector<Statement>& statements) {
    return std::ranges::any_of(statements, [&](const Statement& a) {
        return std::ranges::any_of(
            statements, [&](const Statement& b) { return &a != &b && a.offer.host == b.offer.host; });
    });
}

// At the root.
Report report_of(const std::vector<Statement>& statements, const std::vector<Tried>& tried,
                 const Launch& launch, const std::string& trouble) {
    Report report;
    report.expected_ranks = launch.ranks;
    for (const Statement& statement : statements) report.ranks.push_back({statement.rank, statement.host});
    for (const Statement& statement : statements) add(report, statement.findings, statement.rank);
    Findings common;
    if (!trouble.empty())
        common.problem("MPI of all", trouble,
                       "start with the mpiexec of this MPI library, or with srun and its MPI; in a batch "
                       "script not without it");
    if (launch.rank >= 0) compare(statements, launch.ranks, common);
    if (has_mates(statements))
        check_between_ranks(tried, common);
    else
        check_between_children(common);
    add_common(report, common.all());
    return report;
}

int lose_root() {
    tell_error("doctor: the process that collects the findings is gone");
    return 1;
}

// The lowest rank prints. Nobody ends before, as some launchers then end the others.
int print(Company& company, bool prints, const std::string& text, bool has_problem) {
    const std::optional<std::string> told = company.broadcast((has_problem ? "1" : "0") + text);
    if (!told || told->empty()) return lose_root();
    if (prints) std::cout << told->substr(1) << std::flush;
    company.gather("");
    company.broadcast("");
    return told->front() == '1' ? 1 : 0;
}

struct DoctorWords {
    std::string program;
    bool json = false, no_mpi = false, what_is_preloaded = false;
    std::vector<std::string> messages;
};

int examine(const DoctorWords& words) {
    const Launch launch = launched();
    // Some launchers end the other processes of a job when one has found a problem and says so by its status.
    if (launch.rank >= 0) signal(SIGTERM, SIG_IGN);
    Findings findings;
    const MpiFound mpi = check_alone(words.program, findings);
    std::string trouble;
    const std::unique_ptr<Company> company = meet(launch, mpi.file, !words.no_mpi, trouble);
    Offered offered(launch.rank);
    const std::vector<Statement> statements =
        statements_of(company->gather(text_of(own_statement(offered.offer(), mpi.version, findings))));
    const std::optional<std::string> offers_text = company->broadcast(text_of(offers_of(statements)));
    if (!offers_text) return lose_root();
    const std::vector<Offer> offers = read_offers(*offers_text);
    const std::optional<std::vector<Tried>> tried = try_mates(*company, offered, offers);
    if (!tried) return lose_root();
    Report report;
    if (company->is_root()) report = report_of(statements, *tried, launch, trouble);
    const bool prints = !offers.empty() && offers.front().rank == launch.rank;
    return print(*company, prints, words.json ? as_json(report) : for_people(report), has_problem(report));
}

int answer(const DoctorWords& words) {
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
    // How it starts itself; "" hides them.
    command->add_flag("--what-is-preloaded", words->what_is_preloaded)->group("");
    command->add_option("--carry-messages", words->messages)->expected(2)->group("");
    command->callback([words, &status] { status = answer(*words); });
}

}  // namespace coco::tools
