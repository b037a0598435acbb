// SPDX-License-Identifier: BSD-3-Clause
// The choices of one communicator with learning: cells, candidates, and what must not be learned.
#include "choose/choices.h"

#include <catch2/catch.hpp>

using namespace coco;
using namespace coco::choose;
using algorithms::Collective;

namespace {

// One rank agrees with itself.
class Alone final : public Agreement {
  public:
    void agree(std::span<std::int64_t>) override { ++agreements; }
    int agreements = 0;
};

policy::Policy policy_of(const char* rules) {
    policy::Policy policy;
    auto error = policy::parse_rules(rules, "test", policy.rules);
    REQUIRE_FALSE(error);
    return policy;
}

policy::Facts facts_of(Collective collective, std::uint64_t block_bytes) {
    return {.collective = collective,
            .nodes = 1,
            .ranks_per_node = 4,
            .domains = 1,
            .block_bytes = block_bytes,
            .calls = 0};
}

constexpr const char* kRules = R"(
[[rule]]
collective = "alltoall"
block = "-4K"
algorithm = "eager"
also = ["naive", "eager"]
[[rule]]
collective = ["alltoall", "alltoallv"]
algorithm = "naive"
)";

std::string name_of(const Choice& choice) {
    return choice.algorithm == nullptr ? "mpi" : std::string(choice.algorithm->name);
}

// Makes calls that take as long as `time_of` says. Returns: the name of the last one's choice.
template <class TimeOf>
std::string call(Choices& choices, const policy::Policy& policy, const policy::Facts& facts, int calls,
                 TimeOf time_of) {
    Alone alone;
    const Learning learning{.is_on = true, .agreement = &alone};
    std::string last;
    std::uint64_t now_ns = 1000;
    for (int i = 0; i < calls; ++i) {
        const Choice& choice = choices.choose(policy, facts, false, learning);
        last = name_of(choice);
        if (choice.is_measured) choice.cell->note(now_ns, now_ns + time_of(last));
        now_ns += 1'000'000;
    }
    return last;
}

}  // namespace

TEST_CASE("the fastest of a rule's choice, the MPI library and what the rule names has the calls",
          "[choices]") {
    const policy::Policy policy = policy_of(kRules);
    for (std::string best : {"eager", "mpi", "naive"}) {
        Choices choices;
        CHECK(call(choices, policy, facts_of(Collective::alltoall, 64), 1000,
                   [&](const std::string& name) { return name == best ? 10'000u : 15'000u; }) == best);
        REQUIRE(choices.cells().size() == 1);
        CHECK(choices.cells()[0]->lessons->candidates.size() == 3);
        CHECK(choices.calls(Collective::alltoall) == 1000);
        CHECK(choices.cells()[0]->calls == 1000);
    }
}

TEST_CASE("sizes and rules have cells of their own", "[choices]") {
    const policy::Policy policy = policy_of(kRules);
    Choices choices;
    auto mpi_is_faster = [](const std::string& name) { return name == "mpi" ? 10'000u : 15'000u; };
    auto ours_is_faster = [](const std::string& name) { return name == "mpi" ? 15'000u : 10'000u; };
    CHECK(call(choices, policy, facts_of(Collective::alltoall, 64), 500, mpi_is_faster) == "mpi");
    CHECK(call(choices, policy, facts_of(Collective::alltoall, 100), 500, ours_is_faster) != "mpi");
    CHECK(call(choices, policy, facts_of(Collective::alltoall, 33), 1, ours_is_faster) == "mpi");
    CHECK(choices.cells().size() == 2);
    CHECK(call(choices, policy, facts_of(Collective::alltoall, 5000), 1, ours_is_faster) == "naive");
    CHECK(call(choices, policy, facts_of(Collective::alltoallv, 5000), 1, ours_is_faster) == "naive");
    CHECK(choices.cells().size() == 4);
}

TEST_CASE("a bcast's length does not matter to what was learned, as ranks may name other lengths",
          "[choices]") {
    const policy::Policy policy = policy_of(R"(
[[rule]]
collective = "bcast"
block = "-1K"
algorithm = "eager"
also = ["segmented"]
[[rule]]
collective = "bcast"
algorithm = "direct"
)");
    Choices choices;
    auto mpi_is_slower = [](const std::string& name) { return name == "mpi" ? 900'000u : 1000u; };
    CHECK(call(choices, policy, facts_of(Collective::bcast, 64), 1, mpi_is_slower) == "eager");
    CHECK(call(choices, policy, facts_of(Collective::bcast, 64'000), 999, mpi_is_slower) == "direct");
    CHECK(call(choices, policy, facts_of(Collective::bcast, 64), 1, mpi_is_slower) == "eager");
    REQUIRE(choices.cells().size() == 1);
    CHECK(choices.cells()[0]->calls == 1001);
    CHECK(choices.cells()[0]->lessons->candidates.size() == 2);
}

TEST_CASE("what is forced, and what ranks choose apart, is not learned", "[choices]") {
    policy::Policy policy = policy_of(kRules);
    policy::Facts apart = facts_of(Collective::alltoall, 64);
    apart.block_is_own = true;
    Choices choices;
    auto mpi_is_faster = [](const std::string& name) { return name == "mpi" ? 10'000u : 15'000u; };
    CHECK(call(choices, policy, apart, 1000, mpi_is_faster) == "eager");
    policy.forced[static_cast<int>(Collective::alltoall)] = policy.rules[1].choice;
    Choices forced;
    CHECK(call(forced, policy, facts_of(Collective::alltoall, 64), 1000, mpi_is_faster) == "naive");
    for (const auto& cell : forced.cells()) CHECK(cell->lessons == nullptr);
}

TEST_CASE("without learning a choice holds as long as its rule", "[choices]") {
    const policy::Policy policy = policy_of(R"(
[[rule]]
collective = "bcast"
calls = "10-"
algorithm = "direct"
[[rule]]
collective = "bcast"
algorithm = "eager"
)");
    Choices choices;
    for (int i = 1; i < 20; ++i) {
        const Choice& choice = choices.choose(policy, facts_of(Collective::bcast, 8), false, {});
        CHECK(name_of(choice) == (i < 10 ? "eager" : "direct"));
        CHECK(choice.last_call == (i < 10 ? 9 : UINT64_MAX));
        CHECK(choice.last_of_cell == UINT64_MAX);
        CHECK_FALSE(choice.is_measured);
    }
}

TEST_CASE("a choice says how long it holds, so that calls need not ask", "[choices]") {
    const policy::Policy policy = policy_of(kRules);
    Alone alone;
    const Learning learning{.is_on = true, .agreement = &alone};
    // One asks at every call, the other only where it has to.
    Choices always, seldom;
    Choice held;
    int asked = 0;
    const policy::Facts facts = facts_of(Collective::alltoall, 64);
    for (std::uint64_t i = 1; i <= 5000; ++i) {
        const Choice& choice = always.choose(policy, facts, false, learning);
        if (i == 1 || held.cell->calls >= held.last_of_cell)
            held = seldom.choose(policy, facts, false, learning), ++asked;
        else
            ++held.cell->calls;
        REQUIRE(held.algorithm == choice.algorithm);
        REQUIRE(held.is_measured == choice.is_measured);
        const std::uint64_t time_ns = 1000 + i % 7;
        if (choice.is_measured) choice.cell->note(i * 10'000, i * 10'000 + time_ns);
        if (held.is_measured) held.cell->note(i * 10'000, i * 10'000 + time_ns);
    }
    CHECK(asked < 100);
    CHECK(alone.agreements > 4);
}
