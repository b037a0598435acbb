// SPDX-License-Identifier: BSD-3-Clause
//
// What processes of `coco doctor` tell each other: findings, facts that must fit those of other ranks, and
// memory that the others try to reach as ranks do. Called by doctor.cc and by the fuzz target. Thread safety:
// none. Fails: a text that is no statement gives none; what has failed at a mate is the result.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/doctor_check.h"
#include "tools/doctor_company.h"

namespace coco::os {
class DescriptorDoor;
}

namespace coco::tools {

// What a process offers, as the others are told of it.
struct Offer {
    std::int64_t rank = 0;
    std::string host;  // It is equal for processes of one kernel.
    std::int64_t process = 0, descriptor = -1;
    std::uint64_t cookie = 0;   // It stands in the object, and in the word.
    std::uint64_t address = 0;  // of the word
};

// What could not be done with a mate's memory, as errno says, and what helps.
struct Failure {
    std::int64_t mate = 0;
    bool is_of_reading = false;  // of private memory; else of opening the descriptor
    int error = 0;
    std::string remedy;
    bool passed = false;  // The descriptor has come over a socket instead.
};
// What a rank has failed to reach.
struct Tried {
    std::int64_t rank = 0;
    std::vector<Failure> failed;
};

struct Statement {
    std::int64_t rank = 0;
    std::string host;                               // its name
    std::map<std::string, std::string> namespaces;  // by kind
    std::int64_t user = 0;
    std::vector<std::int64_t> cpus;  // that it may use
    std::int64_t cpu_quota = 0;      // CPUs whose time its control group grants; 0: no limit
    std::int64_t online_cpus = 0;
    std::string libcoco;                          // the version of this command, and a hash of the library
    std::string mpi;                              // the version of its MPI library; empty: unknown
    std::map<std::string, std::string> settings;  // those that must be equal on all ranks
    Offer offer;
    std::vector<Finding> findings;
};

std::string text_of(const Statement& statement);
std::optional<Statement> read_statement(const std::string& text);
std::string text_of(const Tried& tried);
std::optional<Tried> read_tried(const std::string& text);
std::string text_of(const std::vector<Offer>& offers);
std::vector<Offer> read_offers(const std::string& text);

// Asks what differs between ranks and must not, and what their number and their places mean; in
// doctor_ranks.cc. expected_ranks: of the job; 0: unknown.
void compare(const std::vector<Statement>& statements, std::uint64_t expected_ranks, Findings& findings);

// doctor_mates.cc
// The offered memory lives as long as this.
class Offered {
  public:
    explicit Offered(std::int64_t rank);
    ~Offered();
    const Offer& offer() const { return offer_; }
    // Passes the descriptor to mates by sockets, while all of them do so. Returns: whose descriptor has come
    // back.
    std::set<std::int64_t> pass(const std::vector<Offer>& mates);

  private:
    Offer offer_;
    std::unique_ptr<std::uint64_t> word_;
    std::unique_ptr<os::DescriptorDoor> door_;
};

// Tries to reach those mates among `all` that are on this host. Called by all of a company, who pass
// descriptors if some are closed. Returns: nothing if the root is lost.
std::optional<Tried> try_mates(Company& company, Offered& offered, const std::vector<Offer>& all);

Answers answers_of_ranks(const std::vector<Tried>& tried);
// For a process without mates: a child process tries to reach it.
Answers answers_of_child();

}  // namespace coco::tools
