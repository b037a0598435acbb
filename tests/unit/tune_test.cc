// SPDX-License-Identifier: BSD-3-Clause
// coco tune, without MPI: what is tried, who stays in the comparison, and which rules and files come of
// invented figures.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "choose/choices.h"
#include "tools/tune_candidates.h"
#include "tools/tune_rules.h"
#include "tools/tune_samples.h"
#include "tools/tune_write.h"

using namespace coco;
using namespace coco::tools;
using algorithms::Collective;

namespace {

policy::Choice choice_of(const std::string& text, Collective collective = Collective::alltoall) {
    policy::Choice choice;
    REQUIRE_FALSE(policy::parse_choice(text, collective, choice));
    return choice;
}

policy::Policy built_in() {
    policy::Policy policy;
    policy.source = policy::kBuiltIn;
    REQUIRE_FALSE(policy::parse_rules(policy::default_rules(), policy::kBuiltIn, policy.rules));
    return policy;
}

// Figures without noise, unless a spread is given.
struct Took {
    const char* choice;
    double warm_us, cold_us = 0;
    double spread = 0;
    std::size_t samples = 16;
};

class Invented {
  public:
    Invented() {
        report_.mpi = "Some MPI 1.0";
        report_.machine = "a processor, 4 CPUs";
        report_.date = "2026-11-24";
        report_.facts.nodes = 1;
        report_.facts.ranks_per_node = 4;
        report_.facts.domains = 1;
        report_.ranks = 4;
        report_.is_complete = true;
    }
    Invented& size(Collective collective, std::uint64_t block_bytes, const std::vector<Took>& all) {
        for (bool is_cold : {false, true}) {
            TunedCell cell{collective, block_bytes, is_cold, std::nullopt, {}};
            for (const Took& took : all) {
                const double ns = 1000 * (is_cold && took.cold_us != 0 ? took.cold_us : took.warm_us);
                cell.candidates.push_back({choice_of(took.choice, collective), took.samples, ns,
                                           ns * (1 - took.spread), ns * (1 + took.spread)});
            }
            report_.cells.push_back(cell);
            ++report_.planned_cells;
        }
        return *this;
    }
    TuneReport& report() { return report_; }
    Tuned tuned(const policy::Policy& policy = built_in()) const { return tune(report_, policy); }
    // As the rules of the file choose.
    std::string chosen(Collective collective, std::uint64_t block_bytes) const {
        policy::Policy policy;
        REQUIRE_FALSE(
            policy::parse_rules(policy_text(report_, tuned(), built_in()), "tuned.toml", policy.rules));
        policy::Facts facts = report_.facts;
        facts.collective = collective;
        facts.block_bytes = block_bytes;
        return text_of(policy::select(policy, facts).choice);
    }

  private:
    TuneReport report_;
};

Column column_of(std::vector<double> costs, std::size_t preferred = 0) { return {costs, costs, preferred}; }

// The worth of a way to choose for all columns, as fewest_stretches() has it; infinite stretches where a
// column does not allow it.
struct Worth {
    std::size_t stretches = SIZE_MAX, unpreferred = 0;
    double cost = 0;
    auto operator<=>(const Worth&) const = default;
};
Worth worth_of(const std::vector<Column>& columns, const std::vector<std::size_t>& candidates) {
    Worth worth{0, 0, 0};
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (!columns[i].allows(candidates[i])) return {};
        worth.stretches += i == 0 || candidates[i] != candidates[i - 1] ? 1 : 0;
        worth.unpreferred += columns[i].preferred != candidates[i] ? 1 : 0;
        worth.cost += std::log(columns[i].costs[candidates[i]]);
    }
    return worth;
}

// Tries all ways to choose.
Worth best_worth(const std::vector<Column>& columns) {
    const std::size_t count = columns[0].costs.size();
    std::vector<std::size_t> candidates(columns.size());
    Worth best;
    for (bool is_done = false; !is_done;) {
        best = std::min(best, worth_of(columns, candidates));
        std::size_t at = 0;
        while (at < candidates.size() && ++candidates[at] == count) candidates[at++] = 0;
        is_done = at == candidates.size();
    }
    return best;
}

std::vector<std::size_t> spread_out(const std::vector<Stretch>& stretches) {
    std::vector<std::size_t> candidates;
    for (const Stretch& stretch : stretches)
        candidates.insert(candidates.end(), stretch.columns, stretch.candidate);
    return candidates;
}

}  // namespace

TEST_CASE("stretches are as few as there can be, and the best of those", "[tune]") {
    std::mt19937 random(7);
    const double costs[] = {1, 1.005, 1.01, 1.019, 1.03, 1.5, kUnknown};
    for (int round = 0; round < 3000; ++round) {
        const std::size_t candidates = 1 + random() % 4;
        std::vector<Column> columns(1 + random() % 6);
        for (Column& column : columns) {
            for (std::size_t c = 0; c < candidates; ++c)
                column.costs.push_back(costs[random() % std::size(costs)]);
            column.costs[random() % candidates] = 1;
            column.sure_costs = column.costs;
            column.preferred = random() % candidates;
        }
        const std::vector<Stretch> found = fewest_stretches(columns);
        const std::vector<std::size_t> chosen = spread_out(found);
        REQUIRE(chosen.size() == columns.size());
        const Worth worth = worth_of(columns, chosen), best = best_worth(columns);
        REQUIRE(worth.stretches == best.stretches);
        REQUIRE(worth.stretches == found.size());
        REQUIRE(worth.unpreferred == best.unpreferred);
        REQUIRE(worth.cost == Approx(best.cost).margin(1e-9));
    }
}

TEST_CASE("a column that allows nothing has no stretches", "[tune]") {
    CHECK(fewest_stretches(std::vector<Column>{column_of({1, 1.1}), column_of({1.1, 1.1})}).empty());
    CHECK(fewest_stretches({}).empty());
}

TEST_CASE("one rule may hold where each loses little, and a second one where it would lose more", "[tune]") {
    Invented few;
    few.size(Collective::alltoall, 64, {{"mpi", 20}, {"eager", 10}, {"naive", 10.1}})
        .size(Collective::alltoall, 128, {{"mpi", 20}, {"eager", 10.1}, {"naive", 10}})
        .size(Collective::alltoall, 256, {{"mpi", 20}, {"eager", 12}, {"naive", 10}});
    const Tuned tuned = few.tuned();
    REQUIRE(tuned.rules.size() == 1);
    CHECK(text_of(tuned.rules[0].choice) == "naive");
    few.size(Collective::alltoall, 512, {{"mpi", 20}, {"eager", 10}, {"naive", 10.3}});
    CHECK(few.tuned().rules.size() == 2);
    CHECK(few.chosen(Collective::alltoall, 256) == "naive");
    CHECK(few.chosen(Collective::alltoall, 257) == "eager");
}

TEST_CASE("a loss within the samples' noise is no reason for a rule", "[tune]") {
    auto rules = [](double spread) {
        Invented noisy;
        noisy
            .size(Collective::alltoall, 64,
                  {{"mpi", 20}, {"eager", 10, 0, spread}, {"naive", 10.5, 0, spread}})
            .size(Collective::alltoall, 128,
                  {{"mpi", 20}, {"eager", 10.5, 0, spread}, {"naive", 10, 0, spread}});
        return noisy.tuned().rules.size();
    };
    CHECK(rules(0) == 2);
    CHECK(rules(0.01) == 2);
    CHECK(rules(0.2) == 1);
}

TEST_CASE("a few samples that agree by chance make no rules of their own", "[tune]") {
    auto rules = [](std::size_t samples) {
        Invented few;
        few.size(Collective::alltoall, 64,
                 {{"mpi", 40}, {"eager", 10, 0, 0, samples}, {"naive", 11, 0, 0, samples}})
            .size(Collective::alltoall, 128,
                  {{"mpi", 40}, {"eager", 11, 0, 0, samples}, {"naive", 10, 0, 0, samples}});
        return few.tuned().rules.size();
    };
    CHECK(rules(5) == 2);
    CHECK(rules(4) == 1);
    CHECK(rules(1) == 1);
}

TEST_CASE("sizes are uncertain where the samples' noise hides a loss of over a tenth", "[tune]") {
    auto uncertain = [](double loss, double spread) {
        Invented noisy;
        for (std::uint64_t bytes : {64, 256})
            noisy
                .size(Collective::alltoall, bytes,
                      {{"mpi", 40}, {"eager", 10, 0, spread}, {"naive", 10 * loss, 0, spread}})
                .size(Collective::alltoall, 2 * bytes,
                      {{"mpi", 40}, {"eager", 10 * loss, 0, spread}, {"naive", 10, 0, spread}});
        return noisy.tuned().uncertain_sizes();
    };
    CHECK(uncertain(1.2, 0) == 0);
    CHECK(uncertain(1.05, 0.5) == 0);
    CHECK(uncertain(1.2, 0.5) == 2);
}

TEST_CASE("warm and cold buffers count alike", "[tune]") {
    Invented both;
    both.size(Collective::bcast, 4096, {{"mpi", 30}, {"direct", 10, 30}, {"eager", 12, 20}});
    CHECK(both.chosen(Collective::bcast, 4096) == "eager");
    both.report().cells.pop_back();  // interrupted before the cold ones
    CHECK(both.chosen(Collective::bcast, 4096) == "direct");
}

TEST_CASE("where nothing of ours is faster it is left to MPI, else to what is chosen now", "[tune]") {
    Invented ties;
    ties.size(Collective::alltoall, 64, {{"mpi", 10}, {"eager", 10.1}, {"naive", 10.1}});
    CHECK(ties.chosen(Collective::alltoall, 64) == "mpi");
    Invented ours;
    ours.size(Collective::alltoall, 64, {{"mpi", 10.1}, {"eager", 10.1}, {"naive", 10}});
    CHECK(ours.chosen(Collective::alltoall, 64) == "eager");  // by the built-in rules
}

TEST_CASE("rules hold for what was measured, and are open where that tells what is beyond", "[tune]") {
    Invented one;
    const std::vector<Took> took = {{"mpi", 20}, {"eager", 10}, {"naive", 11}, {"morton", 13}};
    one.size(Collective::alltoall, 8, took).size(Collective::alltoall, 16, took);
    policy::Rule rule = one.tuned().rules.at(0);
    CHECK(rule.nodes == policy::Range{1, 1});
    CHECK(rule.ranks == policy::Range{4, 4});
    CHECK(rule.domains == policy::Range{1, 1});
    CHECK(rule.crowded == policy::Range{0, 0});
    CHECK(rule.block == policy::Range{0, 16});
    CHECK(rule.also == std::vector{choice_of("naive")});
    CHECK(rule.reason == "tuned 2026-11-24: 10 us against mpi 20 at 8");
    Invented large;
    large.size(Collective::alltoall, 4096, took)
        .size(Collective::alltoall, 1 << 20, {{"mpi", 10}, {"naive", 15}});
    const std::vector<policy::Rule> rules = large.tuned().rules;
    REQUIRE(rules.size() == 2);
    CHECK(rules[0].block == policy::Range{2049, 4096});
    CHECK(rules[1].block == policy::Range{4097, UINT64_MAX});
    CHECK(rules[1].also.empty());
    CHECK(rules[1].reason == "tuned 2026-11-24: 10 us against naive 15 at 1M");
}

TEST_CASE("related collectives share rules where that saves some", "[tune]") {
    Invented related;
    for (Collective collective : {Collective::alltoall, Collective::alltoallv, Collective::alltoallw}) {
        // Of these alltoall has its own.
        const bool is_plain = collective == Collective::alltoall;
        related.size(collective, 64, {{"mpi", 20}, {"eager", 10}, {"naive", is_plain ? 10 : 20.0}})
            .size(collective, 128, {{"mpi", 20}, {"eager", is_plain ? 20.0 : 10}, {"naive", 10}});
    }
    const Tuned tuned = related.tuned();
    REQUIRE(tuned.groups.size() == 2);
    CHECK(tuned.groups[0].count == 1);
    CHECK(tuned.groups[1].count == 2);
    CHECK(tuned.rules.size() == 3);
    const std::string text = policy_text(related.report(), tuned, built_in());
    CHECK(text.find("collective = [\"alltoallv\", \"alltoallw\"]\n") != text.npos);
    CHECK(text.find("reason     = \"tuned 2026-11-24: alltoallv 10 us against mpi 20 at 64\"\n") !=
          text.npos);
    CHECK(text_of(tuned.chosen(Collective::alltoallw, 128)) == "eager");
    CHECK(text_of(tuned.chosen(Collective::alltoall, 128)) == "naive");
    // Not where their sizes differ.
    related.size(Collective::allgather, 64, {{"mpi", 20}, {"eager", 10}});
    CHECK(related.tuned().groups.size() == 3);
}

TEST_CASE("groups have as few stretches together as there can be", "[tune]") {
    // One size for each of six collectives: which ones may share a candidate decides.
    std::mt19937 random(11);
    for (int round = 0; round < 300; ++round) {
        CostTable table{{policy::Choice{}, choice_of("eager"), choice_of("naive")}, {}};
        for (int i = 0; i < 6; ++i) {
            Costs costs{static_cast<Collective>(i), std::nullopt, {64}, {column_of({1, 1, 1})}, {}};
            for (double& cost : costs.columns[0].sure_costs) cost = random() % 2 ? 1 : 1.5;
            costs.columns[0].sure_costs[random() % 3] = 1;
            table.collectives.push_back(costs);
        }
        // Groups of one stretch each: as many as changes that a run of one candidate cannot avoid.
        std::vector<Column> columns;
        for (const Costs& costs : table.collectives) columns.push_back(costs.columns[0]);
        std::size_t members = 0;
        const std::vector<tools::Group> groups = fewest_groups(table);
        for (const tools::Group& group : groups) {
            CHECK(group.first == members);
            members += group.count;
            CHECK(group.stretches.size() == 1);
        }
        CHECK(members == 6);
        CHECK(groups.size() == fewest_stretches(columns).size());
    }
}

TEST_CASE("v and w forms of neighbours have one choice for all sizes, the one that loses least", "[tune]") {
    Invented neighbors;
    neighbors.size(Collective::neighbor_alltoallv, 64, {{"mpi", 20}, {"eager", 10}, {"naive", 11}})
        .size(Collective::neighbor_alltoallv, 128, {{"mpi", 20}, {"eager", 15}, {"naive", 10}});
    for (TunedCell& cell : neighbors.report().cells) cell.degree = 3;
    const std::vector<policy::Rule> rules = neighbors.tuned().rules;
    REQUIRE(rules.size() == 1);
    CHECK(rules[0].block == policy::Range{});
    CHECK(rules[0].degree == policy::Range{3, 3});
    CHECK(text_of(rules[0].choice) == "naive");
}

TEST_CASE("algorithms that prepare themselves at length have the calls of programs that make many",
          "[tune]") {
    Invented neighbors;
    neighbors.report().facts.nodes = 2;
    neighbors.size(Collective::neighbor_alltoall, 64, {{"mpi", 20}, {"eager", 15}, {"aggregate", 10}});
    CHECK(neighbors.tuned().rules.at(0).calls == policy::Range{50, UINT64_MAX});
}

TEST_CASE("the policy from which tuning began follows", "[tune]") {
    Invented one;
    one.size(Collective::alltoall, 8, {{"mpi", 20}, {"eager", 10}})
        .size(Collective::alltoall, 1 << 20, {{"mpi", 20}, {"eager", 10}});
    const std::string with_built_in = policy_text(one.report(), one.tuned(), built_in());
    CHECK(with_built_in.find("\notherwise = \"built-in\"\n") != std::string::npos);
    policy::Policy again, own;
    REQUIRE_FALSE(policy::parse_rules(with_built_in, "tuned.toml", again.rules));
    CHECK(again.rules.size() == built_in().rules.size() + 1);
    // A file's own rules follow as text, but for those that no call comes to any more.
    own.source = "own.toml";
    REQUIRE_FALSE(policy::parse_rules(R"(
[[rule]]
collective = "alltoall"
nodes = 1
ranks = 4
domains = 1
crowded = false
block = "-2K"
algorithm = "naive"
[[rule]]
collective = "alltoall"
nodes = 1
ranks = 8
domains = 1
algorithm = "naive"
reason = "eight \"ranks\""
)",
                                      "own.toml", own.rules));
    const std::string with_own = policy_text(one.report(), one.tuned(own), own);
    CHECK(with_own.find("otherwise") == std::string::npos);
    REQUIRE_FALSE(policy::parse_rules(with_own, "tuned.toml", again.rules));
    REQUIRE(again.rules.size() == 2);
    CHECK(again.rules[1].ranks == policy::Range{8, 8});
    CHECK(again.rules[1].reason == "eight \"ranks\"");
}

TEST_CASE("what is incomplete says so", "[tune]") {
    Invented one;
    one.size(Collective::alltoall, 8, {{"mpi", 20}, {"eager", 10}});
    one.report().is_complete = false;
    one.report().planned_cells = 10;
    CHECK(policy_text(one.report(), one.tuned(), built_in())
              .find("# Incomplete: 2 of 10 cells were measured.\n") != std::string::npos);
    const auto json = nlohmann::json::parse(json_text(one.report(), one.tuned()));
    CHECK(json["is_complete"] == false);
    CHECK(json["cells"].size() == 2);
    CHECK(json["cells"][0]["chosen"] == "eager");
    CHECK(json["cells"][1]["buffers"] == "cold");
    CHECK(json["cells"][0]["candidates"][1]["median_ns"] == 10000);
}

TEST_CASE("the table has a line for each choice", "[tune]") {
    Invented one;
    one.size(Collective::alltoall, 8, {{"mpi", 20}, {"eager", 10}})
        .size(Collective::alltoall, 16, {{"mpi", 40}, {"eager", 10}})
        .size(Collective::bcast, 8, {{"eager", 10}});
    const std::string table = table_text(one.report(), one.tuned());
    CHECK(table ==
          "4 ranks on 1 node with 1 NUMA domain, Some MPI 1.0\n"
          "collective  blocks   choice  times as fast as mpi, warm\n"
          "alltoall    8 to 16  eager   2.83 (2.00 to 4.00)\n"
          "bcast       8        eager   not compared\n");
}

TEST_CASE("files are replaced whole, and what cannot be written is said before", "[tune]") {
    const std::string folder =
        std::filesystem::temp_directory_path() / ("coco_tune_" + std::to_string(getpid()));
    REQUIRE(std::filesystem::create_directory(folder));
    const std::string path = folder + "/a.toml";
    std::string why;
    CHECK(can_write(path, why));
    CHECK_FALSE(std::filesystem::exists(path));
    REQUIRE(write_whole(path, "one", why));
    REQUIRE(write_whole(path, "two", why));
    std::string text;
    std::ifstream(path) >> text;
    CHECK(text == "two");
    std::filesystem::remove(path);
    CHECK(std::filesystem::is_empty(folder));
    CHECK_FALSE(can_write(folder + "/no/a.toml", why));
    CHECK(why == folder + "/no/a.toml: cannot be written: No such file or directory");
    CHECK_FALSE(write_whole(folder + "/no/a.toml", "x", why));
    std::filesystem::remove_all(folder);
    CHECK(report_path("x/a.toml") == "x/a.json");
}

namespace {

Contender contender_of(const char* choice, std::vector<double> samples_ns) {
    return {choice_of(choice), 0, false, {std::move(samples_ns)}};
}

}  // namespace

TEST_CASE("figures are the median and the quartiles", "[tune]") {
    const Figure figure = figure_of(contender_of("eager", {50, 10, 30, 20, 40}));
    CHECK(figure.samples == 5);
    CHECK(figure.low_ns == Approx(17.5));
    CHECK(figure.median_ns == Approx(30));
    CHECK(figure.high_ns == Approx(42.5));
    CHECK(figure_of(contender_of("eager", {10, 20})).median_ns == Approx(15));
    CHECK(figure_of(contender_of("eager", {10})).high_ns == 10);
}

TEST_CASE("each pass counts alike, so that one which was disturbed decides nothing", "[tune]") {
    Contender contender = contender_of("eager", std::vector<double>(100, 900));
    contender.passes_ns.emplace_back(9, 100);
    contender.passes_ns.emplace_back(9, 102);
    contender.passes_ns.emplace_back();  // it was left out of this one
    const Figure figure = figure_of(contender);
    CHECK(figure.samples == 118);
    CHECK(figure.median_ns == Approx(102));
    CHECK(figure.high_ns > 800);  // and nobody is sure of it
}

TEST_CASE("a pass begins with all candidates", "[tune]") {
    std::vector<Contender> all = {contender_of("mpi", {100, 100}), contender_of("eager", {900, 900})};
    drop_slow(all);
    CHECK(all[1].is_out);
    begin_pass(all);
    CHECK_FALSE(all[1].is_out);
    CHECK_FALSE(is_settled(std::vector{contender_of("mpi", {100})}));
    for (Contender& contender : all) contender.passes_ns.back() = {100, 100};
    drop_slow(all);
    CHECK_FALSE(all[1].is_out);
    CHECK_FALSE(Contender{}.has_samples());
    CHECK(all[1].has_samples());
}

TEST_CASE("a candidate that is half as slow again goes, unless it was disturbed", "[tune]") {
    std::vector<Contender> all = {contender_of("mpi", {100, 104}), contender_of("eager", {170, 160}),
                                  contender_of("naive", {900, 120}), contender_of("morton", {900})};
    drop_slow(all);
    CHECK_FALSE(all[0].is_out);
    CHECK(all[1].is_out);
    CHECK_FALSE(all[2].is_out);
    CHECK_FALSE(all[3].is_out);  // once is no proof
}

TEST_CASE("more samples are wanted until they tell who is best", "[tune]") {
    const std::vector<double> narrow(9, 100.0), apart{150, 200, 150, 200, 150, 200, 150, 200, 150},
        wide{90, 130, 90, 130, 90, 130, 90, 130, 90};
    CHECK(is_settled(std::vector{contender_of("mpi", narrow), contender_of("eager", narrow)}));
    CHECK(is_settled(std::vector{contender_of("mpi", narrow), contender_of("eager", apart)}));
    CHECK_FALSE(is_settled(std::vector{contender_of("mpi", narrow), contender_of("eager", wide)}));
    CHECK_FALSE(is_settled(std::vector{contender_of("mpi", narrow), contender_of("eager", {100, 100})}));
    std::vector<Contender> one_out = {contender_of("mpi", narrow), contender_of("eager", wide)};
    one_out[1].is_out = true;
    CHECK(is_settled(one_out));
}

TEST_CASE("everything that runs is a candidate, once, and what is chosen now", "[tune]") {
    for (int c = 0; c < algorithms::kCollectives; ++c)
        for (std::int32_t nodes : {1, 4}) {
            policy::Facts facts{static_cast<Collective>(c), nodes, 8, 2 * nodes, 1 << 20};
            if (is_neighbor(facts.collective)) facts.degree = 4;
            const std::vector<policy::Choice> all = candidates_for(facts, built_in());
            CHECK(all.front().algorithm == nullptr);
            std::set<std::string> names;
            for (const policy::Choice& choice : all) CHECK(names.insert(text_of(choice)).second);
            for (const algorithms::Algorithm& algorithm : algorithms::registry())
                CHECK(names.contains(std::string(algorithm.name)) ==
                      (serves(algorithm, facts.collective) &&
                       choose::runs_on(algorithm, facts.collective, nodes > 1)));
            const policy::Choice present = policy::select(built_in(), facts).choice;
            CHECK(names.contains(text_of(present)));
        }
}

TEST_CASE("parameters that change nothing are not tried", "[tune]") {
    auto names = [](const policy::Facts& facts) {
        std::set<std::string> all;
        for (const policy::Choice& choice : candidates_for(facts, built_in())) all.insert(text_of(choice));
        return all;
    };
    CHECK(names({Collective::alltoall, 1, 4, 1, 64}) ==
          std::set<std::string>{"mpi", "naive", "morton", "tiled", "eager"});
    CHECK(names({Collective::bcast, 1, 4, 1, 1024}) ==
          std::set<std::string>{"mpi", "eager", "direct", "segmented"});
    CHECK(names({Collective::bcast, 1, 4, 1, 32768}).contains("segmented:segment=16384"));
    const auto two = names({Collective::alltoall, 2, 2, 2, 64});
    CHECK(two.contains("bruck:radix=4"));
    CHECK_FALSE(two.contains("bruck:radix=8"));
    CHECK_FALSE(two.contains("leader:bruck"));
    CHECK_FALSE(two.contains("multileader:leaders=2"));
    CHECK(names({Collective::alltoall, 4, 4, 4, 64}).contains("leader:bruck,radix=4,leaders=2"));
}
