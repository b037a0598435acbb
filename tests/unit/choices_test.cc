// SPDX-License-Identifier: BSD-3-Clause
// The choices of one communicator with learning: cells, candidates, and what must not be learned.
#include "choose/choices.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <optional>
#include <random>

#include "policy_of.h"

using namespace coco;
using namespace coco::choose;
using algorithms::Collective;

namespace {

// The time of all ranks.
std::uint64_t g_now_ns = 1000;

// One rank agrees with itself.
class Alone final : public Agreement {
  public:
    bool agree(std::span<std::int64_t> numbers) override {
        ++agreements;
        numbers.back() = 1000;
        return !fails;
    }
    std::int64_t now_ns() override { return static_cast<std::int64_t>(g_now_ns); }
    std::span<const std::int64_t> told() override { return known; }
    std::vector<std::int64_t> known;
    int agreements = 0;
    bool fails = false;
};

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

constexpr std::uint64_t kUnitNs = 1000;

// Makes calls that take as many units as `time_of` says. Returns: the name of the last one's choice.
template <class TimeOf>
std::string call(Choices& choices, const policy::Policy& policy, const policy::Facts& facts, int calls,
                 TimeOf time_of, const Learning& learning) {
    std::string last;
    for (int i = 0; i < calls; ++i) {
        const Choice& choice = choices.choose(policy, facts, false, learning);
        last = name_of(choice);
        const std::uint64_t time_ns = time_of(last) * kUnitNs;
        if (choice.is_measured) choice.cell->note(g_now_ns, g_now_ns + time_ns);
        g_now_ns += time_ns + kUnitNs;
    }
    return last;
}

// The same, of a communicator that nobody tells anything.
template <class TimeOf>
std::string call(Choices& choices, const policy::Policy& policy, const policy::Facts& facts, int calls,
                 TimeOf time_of) {
    Alone alone;
    return call(choices, policy, facts, calls, time_of, {.is_on = true, .agreement = &alone});
}

}  // namespace

TEST_CASE("the fastest of a rule's choice, the MPI library and what the rule names has the calls",
          "[choices]") {
    const policy::Policy policy = policy_of(kRules);
    for (std::string best : {"eager", "mpi", "naive"}) {
        Choices choices;
        CHECK(call(choices, policy, facts_of(Collective::alltoall, 64), 5000,
                   [&](const std::string& name) { return name == best ? 10'000u : 15'000u; }) == best);
        REQUIRE(choices.cells().size() == 1);
        CHECK(choices.cells()[0]->lessons->candidates.size() == 3);
        CHECK(choices.calls(Collective::alltoall) == 5000);
        CHECK(choices.cells()[0]->calls == 5000);
    }
}

TEST_CASE("sizes and rules have cells of their own", "[choices]") {
    const policy::Policy policy = policy_of(kRules);
    Choices choices;
    auto mpi_is_faster = [](const std::string& name) { return name == "mpi" ? 10'000u : 15'000u; };
    auto ours_is_faster = [](const std::string& name) { return name == "mpi" ? 15'000u : 10'000u; };
    CHECK(call(choices, policy, facts_of(Collective::alltoall, 64), 5000, mpi_is_faster) == "mpi");
    CHECK(call(choices, policy, facts_of(Collective::alltoall, 100), 5000, ours_is_faster) != "mpi");
    CHECK(call(choices, policy, facts_of(Collective::alltoall, 33), 1, ours_is_faster) == "mpi");
    CHECK(choices.cells().size() == 2);
    CHECK(call(choices, policy, facts_of(Collective::alltoall, 5000), 1, ours_is_faster) == "naive");
    CHECK(call(choices, policy, facts_of(Collective::alltoallv, 5000), 1, ours_is_faster) == "naive");
    CHECK(choices.cells().size() == 4);
}

TEST_CASE("a choice names the blocks that it is for: those of its size class and of its rule", "[choices]") {
    const policy::Policy policy = policy_of(R"(
[[rule]]
collective = "alltoall"
block = "-100"
algorithm = "eager"
)");
    Choices choices;
    auto blocks = [&](std::uint64_t bytes) {
        return choices.choose(policy, facts_of(Collective::alltoall, bytes), false, {}).blocks;
    };
    CHECK(blocks(0) == policy::Range{0, 0});
    CHECK(blocks(1) == policy::Range{1, 1});
    CHECK(blocks(2) == policy::Range{2, 2});
    CHECK(blocks(70) == policy::Range{65, 100});
    CHECK(blocks(101) == policy::Range{101, 128});
    CHECK(blocks(100) == policy::Range{65, 100});
    CHECK(blocks(UINT64_MAX) == policy::Range{(std::uint64_t{1} << 63) + 1, UINT64_MAX});
    CHECK(choices.calls(Collective::alltoall) == 7);
}

namespace {

constexpr auto kMpiIsFaster = [](const std::string& name) { return name == "mpi" ? 1000u : 15'000u; };

// The communicators of a process, one after the other: each has its own choices, and is told what the journal
// knows when it is set up.
class Process {
  public:
    // Makes calls on a new communicator, and frees it. Returns: the names of the first call's choice but one,
    // and of the last one's.
    std::pair<std::string, std::string> live(const policy::Facts& facts, int calls, std::size_t room = 1024) {
        Alone alone;
        alone.known.assign(room, -1);
        journal.tell(facts, alone.known);
        const Learning learning{.is_on = true, .agreement = &alone, .journal = &journal};
        Choices choices;
        const std::string first = call(choices, policy, facts, 2, kMpiIsFaster, learning);
        const std::string last =
            calls > 2 ? call(choices, policy, facts, calls - 2, kMpiIsFaster, learning) : first;
        agreements = alone.agreements;
        return {first, last};
    }
    policy::Policy policy = policy_of(kRules);
    Journal journal;
    int agreements = 0;  // on the last communicator
};

using Names = std::pair<std::string, std::string>;

}  // namespace

TEST_CASE("a communicator goes on from what earlier ones of the same arrangement have learned", "[choices]") {
    Process process;
    const policy::Facts facts = facts_of(Collective::alltoall, 64);
    CHECK(process.live(facts, 5000) == Names{"eager", "mpi"});
    CHECK(process.agreements > 1);
    CHECK(process.live(facts, 100) == Names{"mpi", "mpi"});
    REQUIRE(process.journal.lessons().size() == 1);
    CHECK(process.journal.lessons()[0].knowledge.calls == 5100);
    CHECK(process.live(facts_of(Collective::alltoall, 300), 2).first == "eager");
    policy::Facts other = facts;
    other.ranks_per_node = 3;
    CHECK(process.live(other, 2).first == "eager");
    other = facts;
    other.crowded = true;
    CHECK(process.live(other, 2).first == "eager");
    CHECK(process.live(facts, 2).first == "mpi");
}

TEST_CASE("looks go on at the same pace, however short communicators live", "[choices]") {
    Process process;
    const policy::Facts facts = facts_of(Collective::alltoall, 64);
    process.live(facts, 5000);
    const std::uint64_t looks = process.journal.lessons()[0].knowledge.looks;
    int agreements = 0;
    for (int i = 0; i < 1000; ++i) {
        CHECK(process.live(facts, 200).first == "mpi");
        agreements += process.agreements;
    }
    const Knowledge known = process.journal.lessons()[0].knowledge;
    CHECK(known.calls == 205'000);
    // A block has 8 calls of a candidate that takes 15 times as long.
    CHECK(known.looks - looks >= 3);
    CHECK(known.looks - looks <= 60);
    CHECK(agreements <= 60);
}

TEST_CASE("blocks that communicators' ends break off come seldom, and keep no longer one from its own",
          "[choices]") {
    Process process;
    const policy::Facts facts = facts_of(Collective::alltoall, 64);
    int agreements = 0, others = 0;
    for (int i = 0; i < 1000; ++i) {
        others += process.live(facts, 40).second != "eager";
        agreements += process.agreements;
    }
    CHECK(others <= 60);
    CHECK(agreements >= 1);
    CHECK(agreements <= 60);
    CHECK(process.journal.lessons().empty());
    CHECK(process.live(facts, 10'000).second == "mpi");
}

TEST_CASE("what is known of many sizes is told as far as there is room, that which was noted last first",
          "[choices]") {
    Process process;
    for (std::uint64_t bytes : {8, 16, 32, 64}) process.live(facts_of(Collective::alltoall, bytes), 5000);
    process.live(facts_of(Collective::alltoall, 32), 5000);
    const std::size_t one = 1 + 2 + Knowledge::size(3), two = one + 2 + Knowledge::size(3);
    for (std::size_t room : {std::size_t{1}, one - 1, one, two - 1, two}) {
        CHECK(process.live(facts_of(Collective::alltoall, 32), 2, room).first ==
              (room < one ? "eager" : "mpi"));
        int known = 0;
        for (std::uint64_t bytes : {8, 16, 32, 64})
            known += process.live(facts_of(Collective::alltoall, bytes), 2, room).first == "mpi";
        CHECK(known == (room < one ? 0 : room < two ? 1 : 2));
    }
    process.live(facts_of(Collective::alltoall, 300), 5000);
    CHECK(process.live(facts_of(Collective::alltoall, 300), 2, one).first == "mpi");
}

TEST_CASE("neighbours hand on what they know of blocks of one size, where as many blocks go", "[choices]") {
    Process process;
    process.policy = policy_of(R"(
[[rule]]
collective = ["neighbor_alltoall", "neighbor_alltoallv"]
algorithm = "eager"
)");
    auto of = [](Collective collective, std::optional<std::uint64_t> bytes, std::uint64_t blocks) {
        policy::Facts facts = facts_of(collective, 0);
        facts.block_bytes = bytes;
        facts.degree = 0;
        facts.most_blocks = blocks;
        return facts;
    };
    CHECK(process.live(of(Collective::neighbor_alltoall, 64, 2), 5000) == Names{"eager", "mpi"});
    CHECK(process.live(of(Collective::neighbor_alltoall, 64, 2), 5000) == Names{"mpi", "mpi"});
    CHECK(process.live(of(Collective::neighbor_alltoall, 64, 20), 5000) == Names{"eager", "mpi"});
    for (int i = 0; i < 2; ++i)
        CHECK(process.live(of(Collective::neighbor_alltoallv, std::nullopt, 2), 5000) ==
              Names{"eager", "mpi"});
}

TEST_CASE("a communicator that has looked counts before many that have only called", "[choices]") {
    Process process;
    const policy::Facts facts = facts_of(Collective::alltoall, 64);
    Alone alone;
    alone.known.assign(1024, 0);
    const Learning learning{.is_on = true, .agreement = &alone, .journal = &process.journal};
    Choices world;
    call(
        world, process.policy, facts, 20'000,
        [](const std::string& name) { return name == "mpi" ? 15'000u : 10'000u; }, learning);
    CHECK(process.journal.lessons()[0].knowledge.incumbent == 0);
    for (int i = 0; i < 2000; ++i) process.live(facts, 20);
    CHECK(process.journal.lessons()[0].knowledge.calls > 40'000);
    call(world, process.policy, facts, 200'000, kMpiIsFaster, learning);
    CHECK(process.journal.lessons()[0].knowledge.incumbent == 1);
    CHECK(process.live(facts, 20).first == "mpi");
}

TEST_CASE("nobody goes on from a communicator that gave up, and all is forgotten on demand", "[choices]") {
    Process process;
    const policy::Facts facts = facts_of(Collective::alltoall, 64);
    process.live(facts, 5000);
    Alone alone;
    alone.known.assign(1024, 0);
    process.journal.tell(facts, alone.known);
    alone.fails = true;
    {
        const Learning learning{.is_on = true, .agreement = &alone, .journal = &process.journal};
        Choices choices;
        for (int i = 0; i < 500'000; ++i) choices.choose(process.policy, facts, false, learning);
        CHECK(alone.agreements == 1);
    }
    CHECK(process.live(facts, 2).first == "mpi");
    process.journal.forget();
    CHECK(process.live(facts, 2).first == "eager");
}

namespace {

constexpr const char* kBcastRules = R"(
[[rule]]
collective = "bcast"
block = "-1K"
algorithm = "eager"
also = ["segmented"]
[[rule]]
collective = "bcast"
algorithm = "direct"
)";

}  // namespace

TEST_CASE("bcasts of each size are learned, once ranks have agreed that they name the same lengths",
          "[choices]") {
    const policy::Policy policy = policy_of(kBcastRules);
    Choices choices;
    auto mpi_is_faster = [](const std::string& name) { return name == "mpi" ? 1000u : 900'000u; };
    CHECK(call(choices, policy, facts_of(Collective::bcast, 64), 15, mpi_is_faster) == "eager");
    for (const auto& cell : choices.cells()) CHECK(cell->lessons == nullptr);
    CHECK(call(choices, policy, facts_of(Collective::bcast, 64), 9000, mpi_is_faster) == "mpi");
    CHECK(call(choices, policy, facts_of(Collective::bcast, 64'000), 30, mpi_is_faster) == "direct");
    CHECK(call(choices, policy, facts_of(Collective::bcast, 64'000), 9000, mpi_is_faster) == "mpi");
    REQUIRE(choices.cells().size() == 2);
    CHECK(choices.cells()[0]->lessons->candidates.size() == 3);
    CHECK(choices.cells()[1]->lessons->candidates.size() == 2);
}

namespace {

struct FirstBcasts {
    std::uint64_t made = 0, chosen = 0;
};

// Bcasts of two sizes in turns until ranks compare lengths; each is chosen for, or goes by the last choice
// for its size while that holds, as where a thread makes all calls of a size, and another all of the other.
FirstBcasts bcasts_before_comparison(bool by_last_choice) {
    const policy::Policy policy = policy_of(kBcastRules);
    Choices choices;
    Alone alone;
    const Learning learning{.is_on = true, .agreement = &alone};
    Choice last[2];
    FirstBcasts count;
    for (; alone.agreements == 0; ++count.made) {
        REQUIRE(count.made < 5000);
        const bool is_long = count.made % 3 == 0;
        Choice& own = last[is_long];
        if (by_last_choice && own.cell != nullptr && own.cell->calls < own.last_of_cell &&
            choices.calls(Collective::bcast) < own.last_call) {
            ++own.cell->calls;
            continue;
        }
        own = choices.choose(policy, facts_of(Collective::bcast, is_long ? 64'000 : 64), false, learning);
        ++count.chosen;
    }
    CHECK(choices.calls(Collective::bcast) == count.made);
    return count;
}

}  // namespace

TEST_CASE("ranks compare the lengths of bcasts before the same one, however many choices they made",
          "[choices]") {
    const FirstBcasts always = bcasts_before_comparison(false), seldom = bcasts_before_comparison(true);
    CHECK(always.chosen == always.made);
    CHECK(seldom.made == always.made);
    CHECK(seldom.chosen == 3);  // each size's first, and that at which ranks compare
}

TEST_CASE("no bcast is learned where a rank has named another length than the root", "[choices]") {
    const policy::Policy policy = policy_of(kBcastRules);
    std::function<unsigned(const std::string&)> mpi_is_faster = [](const std::string& name) {
        return name == "mpi" ? 1000u : 900'000u;
    };
    Choices early;
    early.note_other_length();
    CHECK(call(early, policy, facts_of(Collective::bcast, 64), 5000, mpi_is_faster) == "eager");
    for (const auto& cell : early.cells()) CHECK(cell->lessons == nullptr);
    mpi_is_faster = [](const std::string& name) { return name == "mpi" ? 1000u : 2000u; };
    Choices late;
    CHECK(call(late, policy, facts_of(Collective::bcast, 64), 9000, mpi_is_faster) == "mpi");
    late.note_other_length();
    CHECK(call(late, policy, facts_of(Collective::bcast, 64), 50'000, mpi_is_faster) == "eager");
}

// Two ranks whose calls agree by turns: each sees the other's numbers of the agreement before.
TEST_CASE("no bcast is learned where ranks count other sizes", "[choices]") {
    const policy::Policy policy = policy_of(kBcastRules);
    class Unlike final : public Agreement {
      public:
        bool agree(std::span<std::int64_t> numbers) override {
            for (std::size_t i = 0; i + 2 < numbers.size(); ++i)
                numbers[i] = std::max<std::int64_t>(numbers[i], 12345);
            return true;
        }
        std::int64_t now_ns() override { return 0; }
        std::span<const std::int64_t> told() override { return {}; }
    } unlike;
    const Learning learning{.is_on = true, .agreement = &unlike};
    Choices choices;
    for (int i = 0; i < 5000; ++i) {
        const Choice& choice = choices.choose(policy, facts_of(Collective::bcast, 64), false, learning);
        CHECK(name_of(choice) == "eager");
        CHECK_FALSE(choice.is_measured);
    }
}

TEST_CASE("where ranks cannot agree the rules' choice stays", "[choices]") {
    const policy::Policy policy = policy_of(kRules);
    Alone alone;
    alone.fails = true;
    const Learning learning{.is_on = true, .agreement = &alone};
    Choices choices;
    for (std::uint64_t i = 0; i < 5000; ++i) {
        const Choice& choice = choices.choose(policy, facts_of(Collective::alltoall, 64), false, learning);
        if (choice.is_measured)
            choice.cell->note(i * 10'000, i * 10'000 + (choice.algorithm == nullptr ? 1 : 1000));
        if (i > 100) CHECK(name_of(choice) == "eager");
    }
    CHECK(alone.agreements == 1);
}

TEST_CASE("alltoallv on one node learns by the largest block of the call before", "[choices]") {
    const policy::Policy policy = policy_of(kRules);
    policy::Facts facts = facts_of(Collective::alltoallv, 0);
    facts.block_bytes = std::nullopt;
    auto mpi_is_faster = [](const std::string& name) { return name == "mpi" ? 10'000u : 15'000u; };
    auto ours_is_faster = [](const std::string& name) { return name == "mpi" ? 15'000u : 10'000u; };
    Choices choices;
    CHECK(call(choices, policy, facts, 5000, mpi_is_faster) == "naive");  // no size is known
    choices.note_size_class(Collective::alltoallv, 6);
    CHECK(call(choices, policy, facts, 5000, mpi_is_faster) == "mpi");
    choices.note_size_class(Collective::alltoallv, 12);
    CHECK(call(choices, policy, facts, 5000, ours_is_faster) == "naive");
    choices.note_size_class(Collective::alltoallv, 6);
    CHECK(call(choices, policy, facts, 1, mpi_is_faster) == "mpi");
    CHECK(choices.cells().size() == 3);
}

namespace {

policy::Facts unknown_sizes() {
    policy::Facts facts = facts_of(Collective::alltoallv, 0);
    facts.block_bytes = std::nullopt;
    return facts;
}

// Makes calls without learning, as the ranks of a node would: a call of ours tells its size class. Returns:
// by which each went.
std::string call_and_tell(Choices& choices, const policy::Policy& policy, int size_class, int calls) {
    std::string all;
    for (int i = 0; i < calls; ++i) {
        const Choice& choice = choices.choose(policy, unknown_sizes(), false, {});
        all += choice.algorithm == nullptr ? 'm' : choice.algorithm->name[0];
        if (choice.algorithm != nullptr && choice.cell->goes_by_told_size &&
            choice.cell->size_class != size_class)
            choices.note_size_class(Collective::alltoallv, size_class);
    }
    return all;
}

// Over several nodes larger blocks are left to MPI.
constexpr const char* kSmallOverNodes = R"(
[[rule]]
collective = "alltoallv"
block = "-4K"
algorithm = "multileader"
)";

constexpr const char* kSizedRules = R"(
[[rule]]
collective = "alltoallv"
block = "-4K"
algorithm = "eager"
[[rule]]
collective = "alltoallv"
block = "-64K"
algorithm = "mpi"
[[rule]]
collective = "alltoallv"
algorithm = "naive"
)";

}  // namespace

TEST_CASE("rules with a block choose for alltoallv on one node by the largest block of the call before",
          "[choices]") {
    const policy::Policy policy = policy_of(kSizedRules);
    Choices choices;
    CHECK(call_and_tell(choices, policy, 20, 3) == "nnn");
    CHECK(call_and_tell(choices, policy, 6, 3) == "nee");
    CHECK(call_and_tell(choices, policy, 12, 3) == "eee");
    CHECK(call_and_tell(choices, policy, 20, 2) == "en");
}

TEST_CASE("where the size is left to MPI, a call is taken now and then to see whether it still is",
          "[choices]") {
    const policy::Policy policy = policy_of(kSizedRules);
    Choices choices;
    // Eager is the first rule's choice that tells a size.
    CHECK(call_and_tell(choices, policy, 14, 34) == "n" + std::string(32, 'm') + "e");
    CHECK(call_and_tell(choices, policy, 14, 33) == std::string(32, 'm') + "e");
    CHECK(call_and_tell(choices, policy, 14, 65) == std::string(64, 'm') + "e");
    int taken = 0;
    for (char way : call_and_tell(choices, policy, 14, 100'000)) taken += way != 'm';
    CHECK(taken > 90);
    CHECK(taken < 110);
    const std::string smaller = call_and_tell(choices, policy, 3, 1030);
    CHECK(smaller.ends_with("eeee"));
    // Sizes that change are looked for soon again, each time if they do not change all the time.
    CHECK(call_and_tell(choices, policy, 14, 34) == "e" + std::string(32, 'm') + "e");
    for (int change = 0; change < 20; ++change) {
        call_and_tell(choices, policy, 14, 10'000);
        CHECK(call_and_tell(choices, policy, 3, 1030).ends_with("eeee"));
        CHECK(call_and_tell(choices, policy, 14, 34) == "e" + std::string(32, 'm') + "e");
    }
}

TEST_CASE("sizes that change all the time, all left to MPI, are seldom looked for", "[choices]") {
    const policy::Policy policy = policy_of(kSizedRules);
    Choices choices;
    std::minstd_rand random(1);
    int taken = 0;
    for (int i = 0; i < 100'000; ++i)
        taken += call_and_tell(choices, policy, random() % 2 == 0 ? 13 : 14, 1) != "m";
    CHECK(taken > 50);
    CHECK(taken < 250);
}

TEST_CASE("a rank that remembers a choice and one that does not take the same calls to see", "[choices]") {
    const policy::Policy policy = policy_of(kSizedRules);
    Choices ranks[2];
    auto choose = [&](Choices& rank) -> const Choice& {
        return rank.choose(policy, unknown_sizes(), false, {});
    };
    auto tell = [&](int size_class) {
        for (Choices& rank : ranks) rank.note_size_class(Collective::alltoallv, size_class);
    };
    Cell* remembered[2];
    tell(20);
    for (int r = 0; r < 2; ++r) remembered[r] = choose(ranks[r]).cell;
    tell(14);
    for (int call = 0; call < 10; ++call)
        for (Choices& rank : ranks) CHECK(choose(rank).algorithm == nullptr);
    // Another thread's call goes by what it remembers on one rank; the other rank has forgotten it.
    tell(20);
    ++remembered[0]->calls;
    CHECK(name_of(choose(ranks[1])) == "naive");
    tell(14);
    for (int call = 0; call < 3000; ++call) {
        const Choice &one = choose(ranks[0]), &other = choose(ranks[1]);
        REQUIRE(one.algorithm == other.algorithm);
        REQUIRE(one.last_of_cell == other.last_of_cell);
    }
}

TEST_CASE("looks at what MPI is compared with do not bring more calls that are taken to see", "[choices]") {
    const policy::Policy policy = policy_of(kSmallOverNodes);
    policy::Facts facts = unknown_sizes();
    facts.nodes = 2;
    Alone alone;
    const Learning learning{.is_on = true, .agreement = &alone};
    Choices choices;
    int taken = 0, measured = 0;
    for (int i = 0; i < 100'000; ++i) {
        const Choice& choice = choices.choose(policy, facts, true, learning);
        const std::uint64_t time_ns = choice.algorithm == nullptr ? 1'000'000 : 1'300'000;
        if (choice.is_measured) choice.cell->note(g_now_ns, g_now_ns + time_ns);
        g_now_ns += time_ns + 1000;
        measured += choice.is_measured;
        taken += i > 20'000 && choice.algorithm != nullptr && !choice.is_measured;
        if (choice.algorithm != nullptr) choices.note_largest_block(false, 1024);
    }
    CHECK(measured > 200);
    CHECK(taken < 200);
}

TEST_CASE("a choice for a size that is left to MPI holds up to the call that is taken to see", "[choices]") {
    const policy::Policy policy = policy_of(kSizedRules);
    Choices choices;
    choices.note_size_class(Collective::alltoallv, 14);
    const Choice& left = choices.choose(policy, unknown_sizes(), false, {});
    CHECK(left.algorithm == nullptr);
    CHECK(left.last_of_cell == 32);
    left.cell->calls = 32;  // repeated calls count there alone
    CHECK(name_of(choices.choose(policy, unknown_sizes(), false, {})) == "eager");
    CHECK(left.last_of_cell == 33);
    CHECK(name_of(choices.choose(policy, unknown_sizes(), false, {})) == "mpi");
    CHECK(left.last_of_cell == 65);
}

TEST_CASE("without rules that ask for it, no size is told and none looked for", "[choices]") {
    const policy::Policy policy = policy_of(R"(
[[rule]]
collective = "alltoallv"
nodes = "2-"
block = "-4K"
algorithm = "multileader"
[[rule]]
collective = "alltoallv"
algorithm = "mpi"
)");
    Choices choices;
    CHECK(call_and_tell(choices, policy, 6, 500) == std::string(500, 'm'));
    CHECK_FALSE(choices.cells()[0]->goes_by_told_size);
}

TEST_CASE("a first call tells a size even where the rule for unknown ones says mpi", "[choices]") {
    const policy::Policy policy = policy_of(R"(
[[rule]]
collective = "alltoallv"
block = "1K-"
algorithm = "naive"
)");
    Choices choices;
    CHECK(call_and_tell(choices, policy, 12, 3) == "nnn");
    Choices small;
    CHECK(call_and_tell(small, policy, 4, 3) == "nmm");
}

TEST_CASE("candidates that do not run here are not tried", "[choices]") {
    const policy::Policy policy = policy_of(R"(
[[rule]]
collective = "alltoall"
algorithm = "eager"
also = ["leader"]
)");
    Choices choices;
    auto all_alike = [](const std::string&) { return 1000u; };
    CHECK(call(choices, policy, facts_of(Collective::alltoall, 64), 200, all_alike) == "eager");
    CHECK(choices.cells()[0]->lessons->candidates.size() == 2);
}

TEST_CASE("ranks do not meet where there is one candidate", "[choices]") {
    const policy::Policy policy = policy_of(R"(
[[rule]]
collective = "alltoall"
algorithm = "mpi"
)");
    for (bool is_restless : {false, true}) {
        Alone alone;
        Choices choices;
        auto all_alike = [](const std::string&) { return 1000u; };
        CHECK(call(choices, policy, facts_of(Collective::alltoall, 64), 5000, all_alike,
                   {.is_on = true, .is_restless = is_restless, .agreement = &alone}) == "mpi");
        CHECK(alone.agreements == 0);
    }
}

TEST_CASE("calls that are taken to see how large blocks are, are no lesson", "[choices]") {
    const policy::Policy policy = policy_of(kSmallOverNodes);
    policy::Facts facts = unknown_sizes();
    facts.nodes = 2;
    Alone alone;
    const Learning learning{.is_on = true, .agreement = &alone};
    Choices choices;
    for (int i = 0; i < 5000; ++i) {
        const Choice& choice = choices.choose(policy, facts, true, learning);
        if (choice.algorithm != nullptr) {
            CHECK_FALSE(choice.is_measured);
            choices.note_largest_block(false, 1u << 20);  // no rule asks for these
        }
    }
    for (const auto& cell : choices.cells())
        if (cell->size_class == 0) CHECK(cell->lessons == nullptr);
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
        const std::uint64_t end_ns = g_now_ns + 1'000'000 + i % 7;
        if (choice.is_measured) choice.cell->note(g_now_ns, end_ns);
        if (held.is_measured) held.cell->note(g_now_ns, end_ns);
        g_now_ns += 10'000'000;
    }
    CHECK(asked < 700);
    CHECK(alone.agreements > 4);
}
