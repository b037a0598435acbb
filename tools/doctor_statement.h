// SPDX-License-Identifier: BSD-3-Clause
//
// What a process of `coco doctor` tells the root: its findings, and facts that must fit those of other ranks. Called by
// doctor.cc. Thread safety: none. Fails: a text that is no statement gives none.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/doctor_findings.h"
#include "tools/doctor_mates.h"
#include "tools/mpi_found.h"

namespace coco::tools {

struct Statement {
    std::int64_t rank = 0;
    std::string host;                               // its name
    std::map<std::string, std::string> namespaces;  // by kind
    std::int64_t user = 0;
    std::vector<std::int64_t> cpus;  // that it may use
    std::int64_t cpu_quota = 0;      // CPUs' time that its control group grants; 0: no limit
    std::int64_t online_cpus = 0;
    std::string libcoco;                          // the version of this command, and a hash of the library
    std::string mpi;                              // the version of its MPI library; empty: unknown
    std::map<std::string, std::string> settings;  // those that must be equal on all ranks
    Offer offer;
    std::vector<Finding> findings;
};

Statement own_statement(const Offer& offer, const std::string& mpi_version, const Findings& findings);
std::string text_of(const Statement& statement);
std::optional<Statement> read_statement(const std::string& text);

// What a process has tried with its mates.
std::string text_of(const Tried& tried);
std::optional<Tried> read_tried(const std::string& text);

// The offers of all, by which each finds its mates.
std::string text_of(const std::vector<Offer>& offers);
std::vector<Offer> read_offers(const std::string& text);

// Compares what ranks have told: adds what differs and must not, and what their number and places mean. expected_ranks: of the
// job; 0: unknown.
void compare(const std::vector<Statement>& statements, std::uint64_t expected_ranks, Findings& findings);

}  // namespace coco::tools
