// SPDX-License-Identifier: BSD-3-Clause
//
// Which algorithm a call gets. Rules come from COCO_POLICY or are the built-in ones, in the same TOML
// language: an array of [[rule]] tables, the first that matches wins; no match means `mpi`. COCO_<COLLECTIVE>
// and COCO_DISABLE go before all rules. Only facts that MPI makes equal on all ranks may be asked for. Thread
// safety: a Policy is immutable once made. Fails: Error with one line for the user (variable or file with
// line, what is wrong, what is allowed); never throws.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/algorithm.h"

namespace coco::policy {

// First and last value, both included; absent in a rule = any.
struct Range {
    std::uint64_t first = 0;
    std::uint64_t last = UINT64_MAX;
    bool contains(std::uint64_t value) const { return first <= value && value <= last; }
};
// "5", "2-8", "16-", "-8", with K/M/G. Returns: nothing if it is none of these.
std::optional<Range> parse_range(std::string_view text);

// algorithm[:parameter[,parameter]], a parameter being key=value or a word; `mpi` has a null algorithm.
struct Choice {
    const algorithms::Algorithm* algorithm = nullptr;
    algorithms::Parameters parameters = {};
};

struct Rule {
    algorithms::Collective collective;
    Range nodes, ranks, block, domains;  // ranks: per node, the largest; block: bytes; domains: NUMA domains
    Range degree, calls;                 // as in Facts
    Choice choice;
    std::string text;    // as written, for --explain and COCO_STATS
    std::string reason;  // the rule's own `reason = "..."`, if given
    int line = 0;
};

struct Facts {
    algorithms::Collective collective;
    std::int32_t nodes;
    std::int32_t ranks_per_node;  // the largest
    std::int32_t domains;         // NUMA domains with ranks
    // Bytes of a block where MPI makes that equal on all ranks (alltoall, allgather, bcast: the whole buffer;
    // allgatherv: the largest block); absent for alltoallv and alltoallw. A rule with `block` never matches
    // then.
    std::optional<std::uint64_t> block_bytes;
    // Neighbours may send and receive blocks of unlike sizes, so that the one that this rank names is not
    // what others do. Only algorithms in which receivers copy understand each other then, and may be chosen
    // by it; all else, mpi too, is chosen as if no size were known.
    bool block_is_own = false;
    // neighbor_*: edges from a rank to other nodes, the mean of all ranks, rounded down; else absent, and a
    // rule with `degree` never matches.
    std::optional<std::uint64_t> degree = std::nullopt;
    // Of this collective on this communicator since it was set up, this one included.
    std::uint64_t calls = 1;
};

struct Policy {
    std::vector<Rule> rules;
    std::optional<Choice> forced[algorithms::kCollectives];  // from the environment, disabled ones included
    std::string source;                                      // "built-in" or the file's name
};

struct Error {
    std::string line;
};

// The built-in rules' text.
std::string_view default_rules();
// Reads rules. `source` is named in errors.
std::optional<Error> parse_rules(std::string_view toml, std::string_view source, std::vector<Rule>& rules);
// "bruck:radix=4" and the like for one collective. Returns: an error that lists the choices.
std::optional<Error> parse_choice(std::string_view text, algorithms::Collective collective, Choice& choice);
// The whole policy from the environment: COCO_DISABLE, COCO_<COLLECTIVE>, COCO_POLICY.
std::optional<Error> from_environment(Policy& policy);

struct Verdict {
    Choice choice;
    int rule = -1;  // index of the rule; -1: forced, or no rule matched
    bool forced = false;
    std::uint64_t last_call = UINT64_MAX;  // as long as `calls` is no larger, other facts alike, it stays
};
Verdict select(const Policy& policy, const Facts& facts);
// A few lines that say which rule applies to these facts and why the ones before it do not.
std::string explain(const Policy& policy, const Facts& facts);

}  // namespace coco::policy
