// SPDX-License-Identifier: BSD-3-Clause
#include "policy/policy.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace coco;
using namespace coco::policy;
using algorithms::Collective;

namespace {

struct Variable {
    const char* name;
    std::string value;
};

// Environment variables for the time of a test.
class Environment {
  public:
    explicit Environment(std::vector<Variable> variables) : variables_(std::move(variables)) {
        for (const Variable& v : variables_) setenv(v.name, v.value.c_str(), 1);
    }
    ~Environment() {
        for (const Variable& v : variables_) unsetenv(v.name);
    }

  private:
    std::vector<Variable> variables_;
};

std::string error_of(std::string_view toml) {
    std::vector<Rule> rules;
    auto error = parse_rules(toml, "file.toml", rules);
    return error ? error->line : "";
}

std::string environment_error(std::vector<Variable> variables) {
    Environment environment(std::move(variables));
    Policy policy;
    auto error = from_environment(policy);
    return error ? error->line : "";
}

Policy rules_of_file(std::string_view toml) {
    Policy policy;
    policy.source = "file.toml";
    auto error = parse_rules(toml, "file.toml", policy.rules);
    INFO((error ? error->line : ""));
    REQUIRE_FALSE(error);
    return policy;
}

std::string chosen(const Policy& policy, const Facts& facts) {
    Verdict verdict = select(policy, facts);
    return verdict.choice.algorithm == nullptr ? "mpi" : std::string(verdict.choice.algorithm->name);
}

Facts facts(Collective collective, std::optional<std::uint64_t> block_bytes, std::int32_t ranks = 4,
            std::int32_t nodes = 1) {
    return {collective, nodes, ranks, 1, block_bytes};
}

}  // namespace

TEST_CASE("ranges", "[policy]") {
    auto check = [](const char* text, std::uint64_t first, std::uint64_t last) {
        auto range = parse_range(text);
        INFO(text);
        REQUIRE(range);
        CHECK(range->first == first);
        CHECK(range->last == last);
    };
    check("5", 5, 5);
    check("2-8", 2, 8);
    check("16-", 16, UINT64_MAX);
    check("-8", 0, 8);
    check("4K-1M", 4096, 1 << 20);
    for (const char* text : {"", "-", "8-2", "a", "1-2-3", "1.5", "2 - 8", "--8"}) {
        INFO(text);
        CHECK_FALSE(parse_range(text));
    }
}

TEST_CASE("choices", "[policy]") {
    Choice choice;
    REQUIRE_FALSE(parse_choice("segmented:segment=64K", Collective::bcast, choice));
    CHECK(choice.algorithm == algorithms::find("segmented"));
    CHECK(choice.parameters.segment_bytes == 65536);
    REQUIRE_FALSE(parse_choice("mpi", Collective::bcast, choice));
    CHECK(choice.algorithm == nullptr);
    auto error = [&](const char* text, Collective collective) {
        auto e = parse_choice(text, collective, choice);
        return e ? e->line : "";
    };
    CHECK(error("fast", Collective::alltoallv) ==
          "unknown algorithm 'fast': must be one of mpi, naive, morton, numa_morton, eager, leader, "
          "multileader, node_aware, sloav, sloavx");
    CHECK(error("morton", Collective::bcast) ==
          "morton does not serve bcast: must be one of mpi, eager, direct, segmented, leader");
    CHECK(error("eager:segment=1", Collective::bcast) == "parameter 'segment=1': eager takes none");
    CHECK(error("tiled:width=0", Collective::alltoall) ==
          "parameter 'width=0': must be a number from 1 to 1048576");
    CHECK(error("mpi:", Collective::bcast) == "parameter '': mpi takes none");
    CHECK(error("segmented:radix=4", Collective::bcast) ==
          "parameter 'radix=4': must be segment=BYTES for segmented");
    CHECK(error("segmented:segment=0", Collective::bcast) ==
          "parameter 'segment=0': must be bytes above 0, with K, M, G or T");
    CHECK(error("leader:4", Collective::alltoall) ==
          "parameter '4': must be pairwise, bruck or multinode_morton");
    CHECK(error("sloav:leaders=2", Collective::alltoallv) ==
          "parameter 'leaders=2': must be radix=NUMBER for sloav");
    CHECK(error("leader:route=ring", Collective::bcast) ==
          "parameter 'route=ring': must be route=cheapest, tree, chain or scatter");
    CHECK(error("bruck:radix=1", Collective::alltoall) ==
          "parameter 'radix=1': must be a number from 2 to 1048576");
    CHECK(choice.algorithm == nullptr);  // left as it was
    REQUIRE_FALSE(parse_choice("leader:bruck,radix=4", Collective::alltoall, choice));
    CHECK(choice.parameters.inner == algorithms::Inner::bruck);
    CHECK(choice.parameters.radix == 4);
    CHECK(algorithms::text_of(choice.parameters) == ":bruck,radix=4");
    REQUIRE_FALSE(parse_choice("leader:radix=4,segment=16K", Collective::bcast, choice));
    CHECK(algorithms::text_of(choice.parameters) == ":radix=4,segment=16384");
    REQUIRE_FALSE(parse_choice("leader:route=scatter", Collective::bcast, choice));
    CHECK(choice.parameters.route == algorithms::Route::scatter);
    CHECK(algorithms::text_of(choice.parameters) == ":route=scatter");
    REQUIRE_FALSE(parse_choice("combining:threshold=2,depth=0", Collective::neighbor_allgather, choice));
    CHECK(algorithms::text_of(choice.parameters) == ":threshold=2,depth=0");
    REQUIRE_FALSE(parse_choice("aggregate:leaders=2", Collective::neighbor_alltoall, choice));
    CHECK(algorithms::text_of(choice.parameters) == ":leaders=2");
    // Texts that mean the same become the same shortest text.
    for (const auto& [text, shortest] : {std::pair{"combining:threshold=4", ""},
                                         {"combining:depth=2,threshold=4", ":depth=2"},
                                         {"combining:depth=0", ":depth=0"}}) {
        REQUIRE_FALSE(parse_choice(text, Collective::neighbor_alltoall, choice));
        CHECK(algorithms::text_of(choice.parameters) == shortest);
    }
    CHECK(error("combining:threshold=0", Collective::neighbor_alltoall) ==
          "parameter 'threshold=0': must be a number from 1 to 1048576");
}

TEST_CASE("the first rule that matches wins", "[policy]") {
    Policy policy = rules_of_file(R"(
[[rule]]
collective = "alltoall"
block = "0-512"
ranks = "2-16"
algorithm = "eager"
[[rule]]
collective = ["alltoall", "alltoallv"]
nodes = 1
algorithm = "morton"
)");
    CHECK(chosen(policy, facts(Collective::alltoall, 512)) == "eager");
    CHECK(chosen(policy, facts(Collective::alltoall, 513)) == "morton");
    CHECK(chosen(policy, facts(Collective::alltoall, 8, 17)) == "morton");
    CHECK(chosen(policy, facts(Collective::alltoall, 8, 17, 2)) == "mpi");
    CHECK(chosen(policy, facts(Collective::alltoallv, {})) == "morton");
    CHECK(chosen(policy, facts(Collective::bcast, 8)) == "mpi");
    CHECK(policy.rules[0].line == 2);
    CHECK(policy.rules[0].text ==
          "collective = \"alltoall\", ranks = \"2-16\", block = \"0-512\", algorithm = \"eager\"");
}

TEST_CASE("a rule with block never matches where the block is not common", "[policy]") {
    Policy policy = rules_of_file("[[rule]]\ncollective='alltoallv'\nblock='0-512'\nalgorithm='eager'\n");
    CHECK(chosen(policy, facts(Collective::alltoallv, {})) == "mpi");
}

TEST_CASE("the rules for a communicator's calls are those that only the block and the call decide between",
          "[policy]") {
    const Policy policy = rules_of_file(R"(
[[rule]]
collective = 'alltoall'
ranks = 3
algorithm = 'naive'
[[rule]]
collective = ['alltoall', 'bcast']
block = '-512'
calls = '10-'
algorithm = 'eager'
[[rule]]
collective = 'alltoall'
degree = 2
algorithm = 'naive'
[[rule]]
collective = 'alltoall'
nodes = 1
algorithm = 'morton'
)");
    CHECK(rules_for(policy, facts(Collective::alltoall, 8)) == std::vector{1, 4});
    CHECK(rules_for(policy, facts(Collective::bcast, {})) == std::vector{2});
    CHECK(rules_for(policy, facts(Collective::allgather, 8)).empty());
}

TEST_CASE("a verdict holds for all blocks that it names, and a neighbouring rule bounds them", "[policy]") {
    const Policy policy = rules_of_file(R"(
[[rule]]
collective = 'alltoall'
block = '100-200'
calls = '10-'
algorithm = 'eager'
[[rule]]
collective = 'alltoall'
block = '50-149'
algorithm = 'naive'
[[rule]]
collective = 'alltoall'
block = '1K-'
algorithm = 'morton'
)");
    auto blocks = [&](std::optional<std::uint64_t> bytes) {
        return select(policy, facts(Collective::alltoall, bytes)).blocks;
    };
    CHECK(blocks(49) == Range{0, 49});
    CHECK(blocks(50) == Range{50, 99});
    CHECK(blocks(120) == Range{100, 149});
    CHECK(blocks(150) == Range{150, 200});
    CHECK(blocks(201) == Range{201, 1023});
    CHECK(blocks(1 << 20) == Range{1024, UINT64_MAX});
    CHECK(blocks({}) == Range{});
    for (std::uint64_t bytes = 0; bytes < 1100; ++bytes) {
        const Verdict verdict = select(policy, facts(Collective::alltoall, bytes));
        REQUIRE(verdict.blocks.contains(bytes));
        for (const std::uint64_t other :
             {verdict.blocks.first, std::min<std::uint64_t>(verdict.blocks.last, 2000)}) {
            const Verdict same = select(policy, facts(Collective::alltoall, other));
            REQUIRE(same.rule == verdict.rule);
            REQUIRE(same.last_call == verdict.last_call);
            REQUIRE(same.blocks == verdict.blocks);
        }
    }
}

TEST_CASE("a call that shall show sizes goes by the first rule that names an algorithm", "[policy]") {
    const Policy policy = rules_of_file(R"(
[[rule]]
collective = 'alltoallv'
nodes = 2
algorithm = 'leader'
[[rule]]
collective = 'alltoallv'
block = '-512'
algorithm = 'mpi'
[[rule]]
collective = 'alltoallv'
block = '1K-'
calls = '-100'
algorithm = 'naive'
)");
    Facts unknown = facts(Collective::alltoallv, {});
    CHECK(ask_for_block(policy, rules_for(policy, unknown)));
    Verdict seeing = select_to_see(policy, rules_for(policy, unknown), unknown);
    CHECK(text_of(seeing.choice) == "naive");
    CHECK(seeing.rule == 2);
    CHECK(seeing.last_call == 100);
    unknown.calls = 101;
    CHECK(text_of(select_to_see(policy, rules_for(policy, unknown), unknown).choice) == "mpi");
    CHECK(ask_for_block(policy, rules_for(policy, unknown)));
    unknown.nodes = 2;
    CHECK(text_of(select_to_see(policy, rules_for(policy, unknown), unknown).choice) == "leader");
    CHECK_FALSE(ask_for_block(policy, rules_for(policy, facts(Collective::alltoall, 8))));
}

namespace {

constexpr const char* kNeighborRules = R"(
[[rule]]
collective = "neighbor_alltoall"
block = "-1K"
degree = "4-"
calls = "100-199"
algorithm = "combining"
[[rule]]
collective = "neighbor_alltoall"
nodes = "2-"
block = "-2K"
algorithm = "aggregate"
[[rule]]
collective = "neighbor_alltoall"
block = "-4K"
algorithm = "eager"
[[rule]]
collective = "neighbor_alltoall"
calls = "-500"
algorithm = "naive"
)";

Facts neighbor_facts(std::uint64_t block_bytes, bool block_is_own, std::uint64_t calls = 1) {
    Facts f = facts(Collective::neighbor_alltoall, block_bytes, 4, 4);
    f.block_is_own = block_is_own;
    f.degree = 4;
    f.calls = calls;
    return f;
}

}  // namespace

TEST_CASE("rules by calls and degree", "[policy]") {
    const Policy policy = rules_of_file(kNeighborRules);
    auto at = [&](std::uint64_t calls) { return select(policy, neighbor_facts(8, false, calls)); };
    auto name = [](const Verdict& verdict) { return verdict.choice.algorithm->name; };
    CHECK(name(at(1)) == "aggregate");
    CHECK(at(1).last_call == 99);
    CHECK(at(99).last_call == 99);
    CHECK(name(at(100)) == "combining");
    CHECK(at(100).last_call == 199);
    CHECK(name(at(200)) == "aggregate");
    CHECK(at(200).last_call == 500);  // of a rule that does not count here
    CHECK(at(501).last_call == UINT64_MAX);
    Facts few = neighbor_facts(8, false, 100);
    few.degree = 3;
    CHECK(chosen(policy, few) == "aggregate");
    few.degree.reset();
    CHECK(chosen(policy, few) == "aggregate");
    CHECK(explain(policy, few).find("degree is not known") != std::string::npos);
    CHECK(explain(policy, neighbor_facts(8, false, 7)).find("(calls is 7, outside 100-199)") !=
          std::string::npos);
    CHECK(policy.rules[0].text ==
          "collective = \"neighbor_alltoall\", block = \"-1K\", degree = \"4-\", calls = \"100-199\", "
          "algorithm = \"combining\"");
    CHECK(error_of("[[rule]]\ncalls = 'often'\nalgorithm = 'mpi'\n") ==
          "file.toml:2:9: calls must be a number or a range such as \"2-8\", \"16-\" or \"-4K\"");
}

TEST_CASE("rules by whether ranks outnumber CPUs", "[policy]") {
    const Policy policy = rules_of_file(R"([[rule]]
collective = "alltoall"
crowded = true
algorithm = "eager"
[[rule]]
collective = "alltoall"
crowded = false
algorithm = "naive"
)");
    Facts some = facts(Collective::alltoall, 64);
    CHECK(chosen(policy, some) == "naive");
    CHECK(rules_for(policy, some) == std::vector{1});
    CHECK(explain(policy, some) ==
          "alltoall: naive\n"
          "  file.toml:1: passed over: collective = \"alltoall\", crowded = true, algorithm = \"eager\" "
          "(crowded is false, not true)\n"
          "  file.toml:5: applies: collective = \"alltoall\", crowded = false, algorithm = \"naive\"\n");
    some.crowded = true;
    CHECK(chosen(policy, some) == "eager");
    CHECK(rules_for(policy, some) == std::vector{0});
    for (const char* wrong : {"1", "'yes'", "'0-1'"})
        CHECK(error_of(std::string("[[rule]]\ncrowded = ") + wrong + "\nalgorithm = 'mpi'\n") ==
              "file.toml:2:11: crowded must be true or false");
}

TEST_CASE("a block that other ranks may not see chooses between receivers' copies only", "[policy]") {
    const Policy policy = rules_of_file(kNeighborRules);
    CHECK(chosen(policy, neighbor_facts(2048, false)) == "aggregate");
    CHECK(chosen(policy, neighbor_facts(8, true, 100)) == "eager");
    CHECK(chosen(policy, neighbor_facts(2048, true)) == "eager");
    CHECK(chosen(policy, neighbor_facts(4096, true)) == "eager");
    CHECK(chosen(policy, neighbor_facts(8192, true)) == "naive");
    CHECK(explain(policy, neighbor_facts(2048, true)).find("(other ranks may see another block") !=
          std::string::npos);
    // From call 501 on no rule without a block matches: all ranks see that.
    for (std::uint64_t block_bytes : {8, 4096, 8192}) {
        CHECK(chosen(policy, neighbor_facts(block_bytes, true, 501)) == "mpi");
        CHECK(
            explain(policy, neighbor_facts(block_bytes, true, 501)).starts_with("neighbor_alltoall: mpi\n"));
    }
    CHECK(chosen(policy, neighbor_facts(4096, false, 501)) == "eager");
    const Policy aggregating = rules_of_file(
        "[[rule]]\nblock='-4K'\ncollective='neighbor_alltoall'\nalgorithm='eager'\n"
        "[[rule]]\ncollective='neighbor_alltoall'\nalgorithm='aggregate'\n");
    CHECK(chosen(aggregating, neighbor_facts(8, true)) == "aggregate");
    CHECK(chosen(aggregating, neighbor_facts(8, false)) == "eager");
}

TEST_CASE("a rule may name what else is worth trying", "[policy]") {
    std::vector<Rule> rules;
    CHECK_FALSE(
        parse_rules("[[rule]]\ncollective=['alltoall','allgather']\nalgorithm='eager'\n"
                    "also=['naive','leader:bruck']\n",
                    "file.toml", rules));
    REQUIRE(rules.size() == 2);
    for (const Rule& rule : rules) {
        REQUIRE(rule.also.size() == 2);
        CHECK(rule.also[0].algorithm->name == "naive");
        CHECK(rule.also[1].parameters.inner == algorithms::Inner::bruck);
        // Ranks whose rules differ in this choose unlike, where calls are learned from.
        CHECK(rule.text.ends_with("algorithm = \"eager\", also = [\"naive\", \"leader:bruck\"]"));
    }
}

TEST_CASE("errors name file, line and column", "[policy]") {
    CHECK(error_of("[[rule]]\nalgoritm = 'mpi'\n") ==
          "file.toml:2:1: unknown key 'algoritm': must be collective, nodes, ranks, domains, crowded, "
          "block, degree, calls, algorithm, also or reason");
    CHECK(error_of("[[rule]]\ncollective = 'bcast'\nalgorithm = 'eager'\nalso = 'direct'\n") ==
          "file.toml:4:8: also must be an array of strings, each as for algorithm");
    CHECK(error_of("[[rule]]\ncollective = 'bcast'\nalgorithm = 'eager'\nalso = ['direct', 'naive']\n") ==
          "file.toml:4:19: naive does not serve bcast: must be one of mpi, eager, direct, segmented, leader");
    CHECK(error_of("[[rule]]\ncollective = 'alltoal'\nalgorithm = 'mpi'\n") ==
          "file.toml:2:14: unknown collective 'alltoal': must be one of alltoall, alltoallv, alltoallw, "
          "allgather, allgatherv, bcast, neighbor_alltoall, neighbor_alltoallv, neighbor_alltoallw, "
          "neighbor_allgather, neighbor_allgatherv");
    CHECK(error_of("[[rule]]\nblock = '8-2'\nalgorithm = 'mpi'\n") ==
          "file.toml:2:9: block must be a number or a range such as \"2-8\", \"16-\" or \"-4K\"");
    CHECK(error_of("[[rule]]\nranks = -1\nalgorithm = 'mpi'\n").starts_with("file.toml:2:9: ranks must be"));
    CHECK(error_of("[[rule]]\ncollective = 'bcast'\nalgorithm = 'naive'\n") ==
          "file.toml:3:13: naive does not serve bcast: must be one of mpi, eager, direct, segmented, leader");
    CHECK(error_of("[[rule]]\nalgorithm = 7\n") == "file.toml:2:13: algorithm must be a string");
    CHECK(error_of("[[rule]]\ncollective = []\nalgorithm = 'mpi'\n") ==
          "file.toml:2:14: collective must name at least one");
    CHECK(error_of("\n[[rule]]\nblock = 5\n") == "file.toml:2:1: a rule needs algorithm = \"...\"");
    CHECK(error_of("[[rules]]\n") == "file.toml:1:3: unknown key 'rules': must be [[rule]] or otherwise");
    CHECK(error_of("[rule]\n").ends_with("rule must be an array of tables, [[rule]]"));
    CHECK(error_of("[[rule]]\nalgorithm = \n").starts_with("file.toml:2:"));
    CHECK(error_of("") == "");
}

TEST_CASE("what is strange in a file shows as one line", "[policy]") {
    CHECK(error_of("\"a\\nb\" = 1") == "file.toml:1:1: unknown key 'a\\x0ab': must be [[rule]] or otherwise");
    CHECK(
        error_of("[[rule]]\nalgorithm = \"x\\u001by\"\ncollective = \"bcast\"") ==
        "file.toml:2:13: unknown algorithm 'x\\x1by': must be one of mpi, eager, direct, segmented, leader");
    CHECK(error_of("caf\xc3\xa9 = 1")
              .starts_with("file.toml:1:"));  // toml++ thinks it knows that there are none
    const Policy policy = rules_of_file("[[rule]]\nalgorithm = \"mpi\"\nreason = \"one\\ntwo\"");
    const std::string lines = explain(policy, facts(Collective::bcast, 8));
    CHECK(lines ==
          "bcast: mpi\n  file.toml:1: applies: collective = \"bcast\", algorithm = \"mpi\" (one\\x0atwo)\n");
}

TEST_CASE("a file may hold no rules", "[policy]") {
    CHECK(rules_of_file("").rules.empty());
    CHECK(rules_of_file("rule = []").rules.empty());
}

TEST_CASE("the built-in rules", "[policy]") {
    Policy policy = rules_of_file(default_rules());
    for (const Rule& rule : policy.rules) CHECK_FALSE(rule.reason.empty());
    for (int c = 0; c < algorithms::kCollectives; ++c) {
        auto collective = static_cast<Collective>(c);
        if (is_neighbor(collective)) continue;
        std::optional<std::uint64_t> block;
        if (collective != Collective::alltoallv && collective != Collective::alltoallw) block = 64;
        const bool personal = is_personal(collective);
        CHECK(chosen(policy, facts(collective, 64, 4, 2)) == (personal ? "multileader" : "leader"));
        CHECK(chosen(policy, facts(collective, std::uint64_t{1} << 21, 4, 2)) == "mpi");
        CHECK(chosen(policy, facts(collective, block)) != "mpi");
    }
}

TEST_CASE("the built-in rules copy once where ranks have a CPU each, from smaller blocks on", "[policy]") {
    Policy policy = rules_of_file(default_rules());
    auto at = [&](Collective collective, std::uint64_t block, std::int32_t ranks, bool crowded) {
        Facts some = facts(collective, block, ranks);
        some.crowded = crowded;
        return chosen(policy, some);
    };
    for (const std::int32_t ranks : {5, 8, 16, 64}) {
        CHECK(at(Collective::alltoall, 1024, ranks, false) == "eager");
        CHECK(at(Collective::alltoall, 1025, ranks, false) == "naive");
        CHECK(at(Collective::alltoall, 4096, ranks, true) == "eager");
        CHECK(at(Collective::alltoall, 4097, ranks, true) == "naive");
    }
    for (const bool crowded : {false, true}) CHECK(at(Collective::alltoall, 4096, 4, crowded) == "eager");
    for (const std::int32_t ranks : {3, 8, 16})
        for (const Collective gather : {Collective::allgather, Collective::allgatherv}) {
            CHECK(at(gather, 512, ranks, false) == "eager");
            CHECK(at(gather, 513, ranks, false) == "naive");
            CHECK(at(gather, 8192, ranks, true) == "eager");
            CHECK(at(gather, 8193, ranks, true) == "naive");
        }
}

TEST_CASE("the built-in rules for bcasts over several nodes", "[policy]") {
    Policy policy = rules_of_file(default_rules());
    auto chosen_for = [&](std::uint64_t bytes, std::int32_t ranks, std::int32_t nodes) {
        return chosen(policy, facts(Collective::bcast, bytes, ranks, nodes));
    };
    CHECK(chosen_for(128 << 10, 2, 4) == "leader");
    CHECK(chosen_for(256 << 10, 2, 4) == "mpi");
    CHECK(chosen_for(1 << 20, 4, 4) == "leader");
    CHECK(chosen_for(128 << 10, 4, 8) == "leader");
    CHECK(chosen_for(256 << 10, 4, 8) == "mpi");
    CHECK(chosen_for(8, 2, 8) == "mpi");
    CHECK(chosen_for(8, 1, 4) == "mpi");
}

TEST_CASE("the built-in rules for exchanges over several nodes of several ranks", "[policy]") {
    Policy policy = rules_of_file(default_rules());
    auto at = [&](Collective collective, std::uint64_t bytes, std::int32_t ranks, bool crowded) {
        Facts some = facts(collective, bytes, ranks, 4);
        some.crowded = crowded;
        return chosen(policy, some);
    };
    for (const std::int32_t ranks : {2, 4, 8}) {
        const bool few = ranks <= 4;
        CHECK(at(Collective::alltoall, 4 << 10, ranks, true) == "leader");
        CHECK(at(Collective::alltoall, 16 << 10, ranks, true) == (few ? "leader" : "node_aware"));
        CHECK(at(Collective::alltoall, 64 << 10, ranks, true) == "node_aware");
        CHECK(at(Collective::alltoallv, 1 << 10, ranks, true) == "multileader");
        CHECK(at(Collective::alltoallw, 64 << 10, ranks, true) == (few ? "multileader" : "node_aware"));
        CHECK(at(Collective::alltoall, 128, ranks, false) == "multileader");
        CHECK(at(Collective::alltoall, 4 << 10, ranks, false) == "node_aware");
        CHECK(at(Collective::alltoall, 8 << 10, ranks, false) == "split");
        CHECK(at(Collective::alltoallv, 1 << 10, ranks, false) == "node_aware");
        for (const bool crowded : {false, true}) {
            CHECK(at(Collective::alltoall, 1 << 20, ranks, crowded) == "split");
            CHECK(at(Collective::alltoallv, 128 << 10, ranks, crowded) == "mpi");
            if (ranks > 2) CHECK(at(Collective::allgather, 1 << 20, ranks, crowded) == "leader");
        }
    }
}

TEST_CASE("over several nodes the built-in rules name one of ours to be tried, if they do not choose it",
          "[policy]") {
    Policy policy = rules_of_file(default_rules());
    auto is_tried = [&](std::string_view name, const Facts& asked) {
        const Rule& rule = policy.rules[static_cast<std::size_t>(select(policy, asked).rule)];
        auto has_name = [&](const Choice& choice) {
            return choice.algorithm != nullptr && choice.algorithm->name == name;
        };
        return has_name(rule.choice) || std::ranges::any_of(rule.also, has_name);
    };
    for (std::int32_t nodes : {4, 8, 16, 64}) {
        for (std::int32_t ranks : {2, 4, 8})
            for (std::uint64_t bytes : {8, 4 << 10, 256 << 10}) {
                for (Collective c : {Collective::allgather, Collective::bcast})
                    CHECK(is_tried("leader", facts(c, bytes, ranks, nodes)));
                for (Collective c : {Collective::alltoallv, Collective::alltoallw})
                    CHECK(is_tried("node_aware", facts(c, bytes, ranks, nodes)));
            }
        for (std::uint64_t bytes : {8, 512, 32 << 10}) {
            CHECK(is_tried("bruck", facts(Collective::alltoall, bytes, 1, nodes)));
            CHECK(is_tried("bruck", facts(Collective::allgather, bytes, 1, nodes)));
            CHECK(is_tried("sloav", facts(Collective::alltoallv, bytes, 1, nodes)));
            CHECK(is_tried("leader", facts(Collective::bcast, bytes, 1, nodes)));
        }
    }
}

TEST_CASE("over several nodes the built-in rules try nothing on blocks that nobody has measured",
          "[policy]") {
    Policy policy = rules_of_file(default_rules());
    for (int c = 0; c < algorithms::kCollectives; ++c)
        for (std::int32_t nodes : {2, 4, 16})
            for (std::int32_t ranks : {1, 2, 4, 64}) {
                if (is_neighbor(static_cast<Collective>(c))) continue;
                const Verdict verdict =
                    select(policy, facts(static_cast<Collective>(c), std::uint64_t{2} << 20, ranks, nodes));
                CHECK(verdict.choice.algorithm == nullptr);
                CHECK(policy.rules[static_cast<std::size_t>(verdict.rule)].also.empty());
            }
}

TEST_CASE("the built-in rules for neighbours", "[policy]") {
    Policy policy = rules_of_file(default_rules());
    auto chosen_for = [&](Collective collective, std::optional<std::uint64_t> bytes, std::int32_t ranks,
                          std::int32_t nodes, std::uint64_t degree, bool block_is_own = false,
                          std::uint64_t calls = 50) {
        Facts f = facts(collective, bytes, ranks, nodes);
        f.degree = degree;
        f.block_is_own = block_is_own;
        f.calls = calls;
        return chosen(policy, f);
    };
    const Collective alltoall = Collective::neighbor_alltoall, allgather = Collective::neighbor_allgather;
    for (Collective c : {alltoall, allgather}) {
        CHECK(chosen_for(c, 64, 4, 1, 0) == "eager");
        CHECK(chosen_for(c, 64 << 10, 4, 1, 0) == "naive");
        CHECK(chosen_for(c, 2048, 4, 4, 8) == "aggregate");
        CHECK(chosen_for(c, 64, 4, 4, 8, false, 49) == "eager");  // may end before bundles have paid
        CHECK(chosen_for(c, 64, 16, 4, 8) == "eager");            // all of two nodes' edges by one leader
        CHECK(chosen_for(c, 64, 4, 4, 0) == "eager");
        CHECK(chosen_for(c, 64, 4, 4, 8, true) == "eager");  // not all ranks see 64
        CHECK(chosen_for(c, 64 << 10, 4, 4, 8) == "naive");
        CHECK(chosen_for(c, 64, 1, 8, 3) == "mpi");
        CHECK(chosen_for(c, 64, 1, 8, 3, true) == "mpi");
    }
    CHECK(chosen_for(alltoall, 4096, 4, 4, 8) == "eager");
    CHECK(chosen_for(allgather, 4096, 4, 4, 8) == "aggregate");
    for (Collective c :
         {Collective::neighbor_alltoallv, Collective::neighbor_alltoallw, Collective::neighbor_allgatherv}) {
        CHECK(chosen_for(c, std::nullopt, 4, 1, 0) == "eager");
        CHECK(chosen_for(c, std::nullopt, 4, 4, 8) == "eager");
        CHECK(chosen_for(c, std::nullopt, 1, 8, 3) == "eager");
    }
    // Two ranks a node: by how many edges that makes from one to another.
    CHECK(chosen_for(alltoall, 64, 2, 4, 4) == "aggregate");
    CHECK(chosen_for(alltoall, 64, 2, 4, 3) == "eager");
    CHECK(chosen_for(alltoall, 64, 2, 8, 4) == "mpi");
    CHECK(chosen_for(alltoall, 64, 2, 8, 4, true) == "mpi");
    CHECK(chosen_for(alltoall, 64, 2, 8, 7, true) == "eager");
    CHECK(chosen_for(allgather, 64, 2, 8, 7) == "aggregate");
}

TEST_CASE("the environment goes before the rules", "[policy]") {
    Environment environment(
        {{"COCO_DISABLE", "bcast,allgather"}, {"COCO_ALLTOALL", "morton"}, {"COCO_BCAST", "eager"}});
    Policy policy;
    REQUIRE_FALSE(from_environment(policy));
    CHECK(policy.source == "built-in");
    CHECK(chosen(policy, facts(Collective::bcast, 8)) == "mpi");
    CHECK(select(policy, facts(Collective::bcast, 8)).forced);
    CHECK(chosen(policy, facts(Collective::allgather, 8)) == "mpi");
    CHECK(chosen(policy, facts(Collective::alltoall, 8)) == "morton");
    CHECK_FALSE(select(policy, facts(Collective::alltoallv, {})).forced);
}

TEST_CASE("COCO_DISABLE switches all off", "[policy]") {
    Policy policy;
    {
        Environment environment({Variable{"COCO_DISABLE", "1"}});
        REQUIRE_FALSE(from_environment(policy));
        for (const auto& forced : policy.forced) CHECK((forced && forced->algorithm == nullptr));
    }
    Environment environment({Variable{"COCO_DISABLE", "0"}});
    REQUIRE_FALSE(from_environment(policy));
    for (const auto& forced : policy.forced) CHECK_FALSE(forced);
}

TEST_CASE("a wrong setting gives one line with the choices", "[policy]") {
    const std::string kAll =
        "alltoall, alltoallv, alltoallw, allgather, allgatherv, bcast, neighbor_alltoall, "
        "neighbor_alltoallv, neighbor_alltoallw, neighbor_allgather, neighbor_allgatherv";
    CHECK(environment_error({Variable{"COCO_DISABLE", "bcast,reduce"}}) ==
          "COCO_DISABLE=bcast,reduce: 'reduce' is unknown: must be 1, 0, or a comma-separated list of " +
              kAll);
    CHECK(environment_error({Variable{"COCO_DISABLE", "bcast,"}}) ==
          "COCO_DISABLE=bcast,: '' is unknown: must be 1, 0, or a comma-separated list of " + kAll);
    CHECK(environment_error({Variable{"COCO_BCAST", "morton"}}) ==
          "COCO_BCAST=morton: morton does not serve bcast: must be one of mpi, eager, direct, segmented, "
          "leader");
    CHECK(environment_error({Variable{"COCO_POLICY", "/no/such.toml"}}) ==
          "COCO_POLICY=/no/such.toml: cannot be read (No such file or directory): must be a readable TOML "
          "policy "
          "file");
    CHECK(environment_error({Variable{"COCO_POLICY", "/"}}).starts_with("COCO_POLICY=/: cannot be read"));
}

TEST_CASE("a wrong setting shows as one line", "[policy]") {
    CHECK(environment_error({{"COCO_DISABLE", "bcast\n"}})
              .starts_with("COCO_DISABLE=bcast\\x0a: 'bcast\\x0a' is unknown"));
    CHECK(environment_error({{"COCO_POLICY", "no\nfile"}})
              .starts_with("COCO_POLICY=no\\x0afile: cannot be read"));
}

TEST_CASE("a policy file that does not end is not read to its end", "[policy]") {
    CHECK(environment_error({{"COCO_POLICY", "/dev/zero"}}) ==
          "COCO_POLICY=/dev/zero: is longer than 4194304 bytes");
}

TEST_CASE("a policy file takes the place of the built-in rules", "[policy]") {
    auto file = std::filesystem::temp_directory_path() / "coco_policy_test.toml";
    std::ofstream(file) << "[[rule]]\ncollective = 'bcast'\nalgorithm = 'segmented:segment=32K'\n";
    Environment environment({Variable{"COCO_POLICY", file.string()}});
    Policy policy;
    REQUIRE_FALSE(from_environment(policy));
    CHECK(policy.source == file.string());
    REQUIRE(policy.rules.size() == 1);
    CHECK(policy.rules[0].choice.parameters.segment_bytes == 32768);
    std::ofstream(file) << "[[rule]]\nalgorithm = 'x'\n";
    auto error = from_environment(policy);
    REQUIRE(error);
    CHECK(error->line.starts_with("COCO_POLICY=" + file.string() + ": " + file.string() +
                                  ":2:13: unknown algorithm"));
    CHECK(policy.rules.size() == 1);  // left as it was
    std::filesystem::remove(file);
}

TEST_CASE("the built-in rules may follow a file's own", "[policy]") {
    const Policy policy =
        rules_of_file("otherwise = 'built-in'\n[[rule]]\ncollective='bcast'\nalgorithm='mpi'\n");
    CHECK(chosen(policy, facts(Collective::bcast, 8)) == "mpi");
    Policy built_in;
    REQUIRE_FALSE(from_environment(built_in));
    REQUIRE(policy.rules.size() == built_in.rules.size() + 1);
    CHECK(policy.rules[0].source == "file.toml");
    CHECK(policy.rules[1].source == kBuiltIn);
    CHECK(policy.rules[1].text == built_in.rules[0].text);
    const Facts asked = facts(Collective::alltoall, 64);
    CHECK(chosen(policy, asked) == chosen(built_in, asked));
    // Rules are shown by the text that they come from.
    CHECK(explain(policy, asked) == explain(built_in, asked));
    const Policy alone = rules_of_file("otherwise = 'built-in'");
    CHECK(alone.rules.size() == built_in.rules.size());
    for (const char* wrong : {"otherwise = 'mpi'", "otherwise = true", "otherwise = ''"})
        CHECK(error_of(wrong) ==
              "file.toml:1:13: otherwise must be \"built-in\": those rules then follow the file's own");
    CHECK(error_of("other = 'built-in'") ==
          "file.toml:1:1: unknown key 'other': must be [[rule]] or otherwise");
}

TEST_CASE("rules that are written are read as the same", "[policy]") {
    std::vector<Rule> rules, again;
    REQUIRE_FALSE(parse_rules(default_rules(), kBuiltIn, rules));
    Rule odd = rules.front();
    odd.collective = Collective::bcast;
    odd.nodes = {2, 2};
    odd.crowded = {1, 1};
    odd.block = {1000, 4 << 20};
    odd.calls = {0, 7};
    REQUIRE_FALSE(parse_choice("leader:route=chain,segment=64K", odd.collective, odd.choice));
    odd.also = {odd.choice, Choice{}};
    odd.reason = "5 \"us\"\\ and #";
    rules.push_back(odd);
    const std::string text = toml_of(rules);
    REQUIRE_FALSE(parse_rules(text, "again", again));
    REQUIRE(again.size() == rules.size());
    for (std::size_t i = 0; i < rules.size(); ++i) {
        CHECK(again[i].collective == rules[i].collective);
        for (auto range : {&Rule::nodes, &Rule::ranks, &Rule::block, &Rule::domains, &Rule::crowded,
                           &Rule::degree, &Rule::calls})
            CHECK(again[i].*range == rules[i].*range);
        CHECK(again[i].choice == rules[i].choice);
        CHECK(again[i].also == rules[i].also);
        CHECK(again[i].reason == rules[i].reason);
    }
    // As few tables as it was written in.
    auto tables = [](std::string_view toml) {
        std::size_t count = 0;
        for (std::size_t at = 0; (at = toml.find("\n[[rule]]\n", at)) != toml.npos; ++at) ++count;
        return count;
    };
    CHECK(tables(text) == tables(default_rules()) + 1);
    CHECK(text.ends_with(R"(
[[rule]]
collective = "bcast"
nodes      = 2
ranks      = "3-8"
crowded    = true
block      = "1000-4M"
degree     = "1-"
calls      = "-7"
algorithm  = "leader:route=chain,segment=65536"
also       = ["leader:route=chain,segment=65536", "mpi"]
reason     = "5 \"us\"\\ and #"
)"));
}

TEST_CASE("explain says which rule applies and why others do not", "[policy]") {
    Policy policy = rules_of_file(R"([[rule]]
collective = "alltoall"
block = "-512"
algorithm = "eager"
[[rule]]
collective = "alltoall"
algorithm = "morton"
reason = "measured"
)");
    CHECK(explain(policy, facts(Collective::alltoall, 4096)) ==
          "alltoall: morton\n"
          "  file.toml:1: passed over: collective = \"alltoall\", block = \"-512\", algorithm = \"eager\" "
          "(block is 4096, "
          "outside 0-512)\n"
          "  file.toml:5: applies: collective = \"alltoall\", algorithm = \"morton\" (measured)\n");
    CHECK(explain(policy, facts(Collective::bcast, 1)) == "bcast: mpi\n  no rule matches, so mpi\n");
    policy.forced[0] = Choice{};
    CHECK(explain(policy, facts(Collective::alltoall, 1)) ==
          "alltoall: mpi\n  forced by the environment, before any rule\n");
}
