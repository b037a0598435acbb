// SPDX-License-Identifier: BSD-3-Clause
//
// The protocols of the channel in every way that the C++ memory model allows, on two and three ranks and with
// small rings; and the test of that: what is broken on purpose in the library's code, one atomic operation at
// a time, must be found.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>

#include "places.h"
#include "ranks.h"

using namespace coco::model;

namespace {

struct Explored {
    Scenario scenario;
    Result result;
};

// All scenarios with nothing broken; explored once.
const std::vector<Explored>& all_explored() {
    static const std::vector<Explored> all = [] {
        std::vector<Explored> explored;
        for (auto scenarios : {slot_scenarios, tape_scenarios, stage_scenarios, stream_scenarios,
                               doorbell_scenarios, directory_scenarios, recycling_scenarios})
            for (Scenario& scenario : scenarios()) {
                Result result = explore(scenario);
                explored.push_back({std::move(scenario), std::move(result)});
            }
        return explored;
    }();
    return all;
}

// An operation of one line of the library, wherever the compiler has put it.
struct Spot {
    Line line;
    Operation operation;
    auto operator<=>(const Spot&) const = default;
};
using Spots = std::map<Spot, std::set<Place>>;

const Spots& all_spots() {
    static const Spots all = [] {
        std::map<Place, Operation> operations;
        std::set<Place> places;
        for (const Explored& explored : all_explored())
            for (const auto& [place, operation] : explored.result.places) {
                operations.emplace(place, operation);
                places.insert(place);
            }
        Spots spots;
        for (const auto& [place, line] : lines_of(places)) spots[{line, operations[place]}].insert(place);
        return spots;
    }();
    return all;
}

// Where in the library: part of a line of a file.
struct Where {
    const char* file;
    const char* text;
};
bool is_at(const Line& line, const Where& where) {
    return line.file == where.file && line.text.find(where.text) != std::string::npos;
}

// The same fault at each of these.
Mutation mutation_at(Fault fault, const std::vector<Where>& all_where) {
    Mutation mutation;
    for (const Where& where : all_where) {
        const std::size_t before = mutation.size();
        for (const auto& [spot, places] : all_spots())
            if (is_at(spot.line, where))
                for (Place place : places) mutation[place] = fault;
        INFO("no line of " << where.file << " has " << where.text);
        REQUIRE(mutation.size() > before);
    }
    return mutation;
}

// Decision 10: a raise has no fence, and so may miss a sleeper. With one order of these operations it could
// not.
const std::vector<Where> kRaise = {{"sync/flag.h", "word.store(value"}, {"sync/flag.h", "sleepers.load("}};
const std::vector<Where> kRaiseAndLook = {kRaise[0], kRaise[1], {"sync/flag.cc", "word.load("}};

bool runs_through(const Result& result, const Mutation& mutation) {
    return std::ranges::any_of(mutation, [&](const auto& at) { return result.places.contains(at.first); });
}

// How a broken scenario shows; empty: it does not.
std::string difference(const Result& unbroken, const Result& broken) {
    if (!broken.error.empty()) return broken.error;
    if (unbroken.goals != 0 && broken.goals == 0) return "it never comes to its goal";
    return {};
}

// The same where wakes are missed only because something is broken.
std::string difference_in_order(const Scenario& scenario, const Mutation& mutation) {
    Mutation ordered = mutation;
    for (const auto& [place, fault] : mutation_at(Fault::stronger, kRaiseAndLook))
        ordered.emplace(place, fault);
    return explore(scenario, ordered).missed != 0 ? "a wake is missed" : "";
}

// Which scenario finds it and how; empty: none does.
std::string finding(const Mutation& mutation) {
    for (const auto& [scenario, unbroken] : all_explored()) {
        if (!runs_through(unbroken, mutation)) continue;
        std::string found = difference(unbroken, explore(scenario, mutation));
        if (found.empty() && unbroken.missed != 0) found = difference_in_order(scenario, mutation);
        if (!found.empty()) return scenario.name + ": " + found;
    }
    return {};
}

// A fault that no scenario finds because it is no mistake. (Weaker orders: the code's are stronger than
// needed.)
struct Excused {
    Where where;
    Fault fault;
    const char* why;
};
const Excused kExcused[] = {
    {{"channel/channel.cc", "bool is_there = flag.value.load("},
     Fault::weaker,
     "the load behind it acquires"},
    {{"channel/channel.cc", "memory_order_acquire) != 0) {"}, Fault::weaker, "so does the header's"},
    {{"channel/channel.cc", "memory_order_acquire) == 0) wait_for"}, Fault::weaker, "so does the header's"},
    {{"channel/channel.cc", "Header header{word.load("},
     Fault::weaker,
     "one of those before has acquired it"},
    {{"channel/control_pool.cc", "flag.value.store("}, Fault::left_out, "only blocks without a call need it"},
    {{"channel/directory.cc", "reach_.store(step + 1"}, Fault::weaker, "changes_ is raised behind it"},
    {{"channel/directory.h", "reach_.load("}, Fault::weaker, "who finds nothing has acquired changes_"},
    {{"channel/directory.cc", "reach_.store(0"}, Fault::weaker, "nothing is published by it"},
    {{"channel/directory.cc", "reach_.store(0"}, Fault::left_out, "then looks go on being long"},
    {{"channel/find_peer.cc", "changes.value.load("},
     Fault::at_once,
     "then it looks around instead of waiting"},
    {{"sync/flag.cc", "bell.rings.load("}, Fault::at_once, "then it looks around instead of sleeping"},
    {{"sync/flag.cc", "sleepers.fetch_sub("}, Fault::left_out, "then the bell is rung for nobody"},
};
bool is_excused(const Line& line, Fault fault) {
    return std::ranges::any_of(kExcused, [&](const Excused& excused) {
        return excused.fault == fault && is_at(line, excused.where);
    });
}

constexpr const char* kFaults[] = {"unbroken", "weaker", "stronger", "left out", "at once"};

std::vector<Fault> faults_of(const Operation& operation) {
    std::vector<Fault> faults;
    if (operation.order != Order::relaxed) faults.push_back(Fault::weaker);
    if (operation.does != Does::load) faults.push_back(Fault::left_out);
    if (operation.does == Does::load && acquires(operation.order)) faults.push_back(Fault::at_once);
    return faults;
}

}  // namespace

TEST_CASE("the protocols of the channel hold", "[model]") {
    for (const auto& [scenario, result] : all_explored()) {
        INFO(scenario.name);
        CHECK(result.error == "");
        CHECK(result.executions > 0);
        std::printf("%s: %llu executions, %llu cut, %llu missed wakes\n", scenario.name.c_str(),
                    static_cast<unsigned long long>(result.executions),
                    static_cast<unsigned long long>(result.cut),
                    static_cast<unsigned long long>(result.missed));
    }
}

TEST_CASE("each ordered operation of the library is run", "[model]") {
    std::set<Line> run;
    for (const auto& [spot, places] : all_spots()) run.insert(spot.line);
    CHECK(ordered_lines().size() > 20);
    for (const Line& line : ordered_lines()) {
        INFO(line.file << ":" << line.number << ": " << line.text);
        CHECK(run.contains(line));
    }
}

TEST_CASE("no operation can be weaker, left out or not waited for", "[model][long]") {
    int tried = 0;
    for (const auto& [spot, places] : all_spots())
        for (Fault fault : faults_of(spot.operation)) {
            Mutation mutation;
            for (Place place : places) mutation[place] = fault;
            const std::string found = finding(mutation);
            INFO(spot.line.file << ":" << spot.line.number << ": " << spot.line.text << ", "
                                << kFaults[static_cast<int>(fault)] << ": found by " << found);
            CHECK(found.empty() == is_excused(spot.line, fault));
            ++tried;
        }
    std::printf("%d faults tried\n", tried);
    CHECK(tried > 40);
}

TEST_CASE("of orders that stand in for each other one is needed", "[model]") {
    CHECK_FALSE(finding(mutation_at(Fault::weaker, {kExcused[1].where, kExcused[2].where, kExcused[3].where}))
                    .empty());
}

TEST_CASE("a raise without a fence may miss a sleeper, and nothing else may", "[model]") {
    for (const auto& [scenario, result] : all_explored()) {
        const bool sleeps = scenario.name.find("bell") != std::string::npos;
        INFO(scenario.name);
        CHECK((result.missed != 0) == sleeps);
        if (!sleeps) continue;
        // By the memory model a fence in the raise alone would not do: the sleeper's look needs its order,
        // too.
        CHECK(explore(scenario, mutation_at(Fault::stronger, kRaise)).missed != 0);
        CHECK(explore(scenario, mutation_at(Fault::stronger, kRaiseAndLook)).missed == 0);
    }
}

TEST_CASE("a channel that is used wrongly is found out", "[model]") {
    for (const Scenario& scenario : wrong_scenarios()) {
        INFO(scenario.name);
        CHECK(explore(scenario).error != "");
    }
}
