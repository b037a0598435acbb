// SPDX-License-Identifier: BSD-3-Clause
//
// Chooses the algorithm for a call. Rules come from the file that COCO_POLICY names, or are the built-in ones
// in the same TOML language: an array of [[rule]] tables, of which the first that matches wins; no match
// means `mpi`, unless the file says that the built-in rules follow. COCO_<COLLECTIVE> and COCO_DISABLE go
// before all rules. Rules may ask only for facts that are equal on all ranks. Called by settings, dispatch
// and the coco command. Thread safety: a Policy is immutable once made. Fails: returns an Error with one line
// for the user (variable or file with line, what is wrong, what is allowed); never throws.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/one_line.h"

namespace coco::policy {

// First and last value, both included. A condition that a rule does not have is the range of all values.
struct Range {
    std::uint64_t first = 0;
    std::uint64_t last = UINT64_MAX;
    bool contains(std::uint64_t value) const { return first <= value && value <= last; }
    bool contains_all() const { return *this == Range{}; }
    // The values of both; where there is none, a range that contains nothing.
    Range overlap_with(const Range& other) const {
        return {first > other.first ? first : other.first, last < other.last ? last : other.last};
    }
    friend bool operator==(const Range&, const Range&) = default;
};
// Reads "5", "2-8", "16-" or "-8", with K, M, G or T. Returns: nothing if the text has none of these forms.
std::optional<Range> parse_range(std::string_view text);

// A choice, which a user writes as algorithm[:parameter[,parameter]]; a parameter is key=value or a word. For
// `mpi` the algorithm is null.
struct Choice {
    const algorithms::Algorithm* algorithm = nullptr;
    algorithms::Parameters parameters = {};
    friend bool operator==(const Choice&, const Choice&) = default;
};

// The text by which a user would write it.
std::string text_of(const Choice& choice);

struct Rule {
    algorithms::Collective collective;
    Range nodes, ranks, block, domains, degree, calls;  // conditions on the members of Facts
    Range crowded;                                      // the numbers 0 and 1 stand for false and true
    Choice choice;
    std::vector<Choice> also;  // worth trying, where calls are learned from
    std::string text;          // as it was written, for --explain and to compare the rules of ranks
    std::string reason;        // the rule's own `reason = "..."`, if given, as one line
    std::string source = {};   // where it was read from: a file's name, or kBuiltIn
    int line = 0;
};

// The conditions of rules, in the order in which they are written.
struct Condition {
    const char* name;
    Range Rule::*range;
};
inline constexpr Condition kConditions[] = {{"nodes", &Rule::nodes},     {"ranks", &Rule::ranks},
                                            {"domains", &Rule::domains}, {"crowded", &Rule::crowded},
                                            {"block", &Rule::block},     {"degree", &Rule::degree},
                                            {"calls", &Rule::calls}};
// Whether both rules have the same conditions; collectives may differ.
bool conditions_are_equal(const Rule& one, const Rule& other);

// The source of the rules that libcoco brings along.
inline constexpr std::string_view kBuiltIn = "built-in";

struct Facts {
    algorithms::Collective collective;
    std::int32_t nodes;
    std::int32_t ranks_per_node;  // the ranks of the node that has most
    std::int32_t domains;         // NUMA domains that have ranks
    // Bytes of a block, if all ranks know them (bcast: of the whole buffer; allgatherv: of the largest block;
    // alltoallv and alltoallw: of the largest block of the call before). If absent, a rule with `block` never
    // matches.
    std::optional<std::uint64_t> block_bytes;
    // Neighbours may send and receive blocks of different sizes. If true, block_bytes is what this rank
    // names, and other ranks may name another size. It may then decide only between algorithms in which
    // receivers copy, as these understand each other. Everything else, mpi too, is chosen as if no size were
    // known.
    bool block_is_own = false;
    // neighbor_*: the number of edges from a rank to other nodes, as the mean of all ranks, rounded down. For
    // other collectives it is absent, and a rule with `degree` never matches.
    std::optional<std::uint64_t> degree = std::nullopt;
    // neighbor_*: the most blocks in any rank's send or receive buffer. No rule asks for it.
    std::optional<std::uint64_t> most_blocks = std::nullopt;
    bool crowded = false;  // on some host there are more ranks than CPUs that they may use
    // The number of calls of this collective on this communicator since it was set up, with this one.
    std::uint64_t calls = 1;
};

struct Policy {
    std::vector<Rule> rules;
    // By collective: the choice that the environment forces; `mpi` if the collective is disabled.
    std::optional<Choice> forced[algorithms::kCollectives];
    std::string source;  // kBuiltIn or the file's name; the built-in rules may follow the file's
};

struct Error {
    // What a user wrote shows as one line.
    explicit Error(std::string_view text) : line(base::one_line(text)) {}
    std::string line;
};

// A file with more is no policy, nor are there more learned rules; some files never end.
inline constexpr std::size_t kMostFileBytes = 4u << 20;
// The names of all collectives, separated by commas.
std::string list_of_collectives();
// The text of the built-in rules.
std::string_view default_rules();
// Reads rules; behind them come the built-in ones if the text asks for that. source: the name for error
// lines, and of the rules.
std::optional<Error> parse_rules(std::string_view toml, std::string_view source, std::vector<Rule>& rules);
// The same rules as text for parse_rules(): those that differ in the collective alone and follow one another
// become one.
std::string toml_of(std::span<const Rule> rules);
// Reads a choice for one collective, such as "bruck:radix=4". Returns: an error that lists what is allowed,
// if the text is wrong.
std::optional<Error> parse_choice(std::string_view text, algorithms::Collective collective, Choice& choice);
// The whole policy from the environment: COCO_DISABLE, COCO_<COLLECTIVE>, COCO_POLICY.
std::optional<Error> from_environment(Policy& policy);

struct Verdict {
    Choice choice;
    int rule = -1;  // index of the rule; -1: forced, or no rule matched
    bool forced = false;
    // The number of the last call for which the verdict holds if all other facts stay the same.
    std::uint64_t last_call = UINT64_MAX;
    // The blocks, this one among them, for which the verdict holds if all other facts stay the same. (There
    // may be more of them.)
    Range blocks = {};
};
Verdict select(const Policy& policy, const Facts& facts);
// The numbers of the rules that match but for their conditions on the block and the call: few of many, once a
// communicator and a collective are known.
std::vector<int> rules_for(const Policy& policy, const Facts& facts);
// The same verdict. Requires: these are the rules for the facts.
Verdict select(const Policy& policy, std::span<const int> rules, const Facts& facts);
// For a call that shall show how large blocks are, which calls of the MPI library's own function do not: the
// first rule that matches whatever the block and chooses an algorithm; mpi where there is none.
Verdict select_to_see(const Policy& policy, std::span<const int> rules, const Facts& facts);
// Whether one of the rules asks for the block.
bool ask_for_block(const Policy& policy, std::span<const int> rules);
// A few lines that say which rule applies to these facts and why the ones before it do not.
std::string explain(const Policy& policy, const Facts& facts);

}  // namespace coco::policy
