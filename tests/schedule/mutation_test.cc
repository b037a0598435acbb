// SPDX-License-Identifier: BSD-3-Clause
//
// The test of the test: what is broken on purpose must be found. First calls written by hand, one for each
// thing that the simulator looks for; then every step of every algorithm on small machines, left out, moved
// or bent: once as the builder writes them, once with each wait and each block a step of its own.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include "form.h"
#include "graphs.h"
#include "shapes.h"

using namespace coco;
using namespace coco::simulator;
using algorithms::Exchange;
using schedule::Act;
using schedule::Area;
using schedule::Builder;
using schedule::kArrived;
using schedule::kDone;
using schedule::Place;
using schedule::Schedule;
using schedule::Step;

namespace {

Call by_hand(Exchange exchange, std::vector<Schedule> schedules) {
    Call call{exchange, 0, 1, true, true, {}};
    call.schedules = std::move(schedules);
    return call;
}

// A bcast on two ranks, as it should be.
Schedule root_of_two() { return Builder().raise(kArrived).raise(kDone).wait(1, kDone).take(); }
Builder leaf_of_two() { return Builder().wait(0, kArrived).copy({0, Area::send, 0}, {1, Area::recv, 0}); }

std::string fault_of(const Call& call, const topology::NodeMap& map = topology::one_node(2)) {
    return simulate(map, {call, call, call}).fault;
}
void require_fault(const std::string& wanted, const Call& call,
                   const topology::NodeMap& map = topology::one_node(2)) {
    CHECK_THAT(fault_of(call, map), Catch::Contains(wanted));
}

Step wait_for(std::int32_t rank, schedule::Milestone milestone) {
    return Builder().wait(rank, milestone).take().steps.front();
}
// The same schedule with each wait and each block a step of its own.
Schedule spelled_out(const Schedule& schedule) {
    Schedule plain{{}, schedule.scratch_blocks};
    for (const Step& step : schedule.steps) {
        if (step.act != Act::copy && step.act != Act::wait) plain.steps.push_back(step);
        for (std::int32_t i = 0; step.act == Act::wait && i < step.count; ++i)
            plain.steps.push_back(wait_for(step.awaited(i), step.milestone));
        for (std::int32_t i = 0; step.act == Act::copy && i < step.count; ++i) {
            if (step.after_target && i == 0) plain.steps.push_back(wait_for(step.target_owner, kArrived));
            if (step.after_source) plain.steps.push_back(wait_for(step.source(i).owner, kArrived));
            Builder block;
            plain.steps.push_back(block.copy(step.source(i), step.target(i)).take().steps.front());
        }
    }
    return plain;
}

// All ways to break one step. Each returns false if it does not apply.
using Mutation = std::function<bool(const Call&, Schedule&, std::size_t step)>;
// The rank whose schedule is broken.
std::int32_t g_self;
struct Named {
    const char* name;
    Mutation apply;
};

bool overlap(Place a, std::int32_t a_blocks, Place b, std::int32_t b_blocks) {
    return a.owner == b.owner && a.area == b.area && a.index < b.index + b_blocks &&
           b.index < a.index + a_blocks;
}
// Whether what the messages completed at step `i` have brought is told to others or used before the next one.
bool is_used(const Schedule& s, std::int32_t self, std::size_t i) {
    auto received = [&](Place first, std::int32_t blocks) {
        for (std::size_t j = i; j-- > 0 && s.steps[j].act != Act::complete;)
            if (s.steps[j].act == Act::receive &&
                overlap(s.steps[j].first(self), s.steps[j].count, first, blocks))
                return true;
        return false;
    };
    for (std::size_t j = i + 1; j < s.steps.size() && s.steps[j].act != Act::complete; ++j) {
        const Step& step = s.steps[j];
        if (step.act == Act::raise) return true;
        if (step.act == Act::copy && received(step.source(0), step.count)) return true;
        if (step.act == Act::send && received(step.first(self), step.count)) return true;
    }
    return false;
}
bool drop(const Call&, Schedule& s, std::size_t i) {
    if (s.steps[i].act == Act::complete && !is_used(s, g_self, i)) return false;
    s.steps.erase(s.steps.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
}
// Whether nobody but `rank` waits for this milestone: what `rank` has done it knows.
bool is_for(const Call& call, schedule::Milestone milestone, std::int32_t rank) {
    if (milestone == kDone) return false;
    for (std::size_t r = 0; r < call.schedules.size(); ++r)
        for (const Step& step : call.schedules[r].steps)
            if (step.act == Act::wait && step.source_owner == g_self && step.milestone >= milestone &&
                static_cast<std::int32_t>(r) != rank)
                return false;
    return true;
}
// A raise or a copy too early: before what came before it.
bool move_earlier(const Call& call, Schedule& s, std::size_t i) {
    if (i == 0 || (s.steps[i].act != Act::copy && s.steps[i].act != Act::raise)) return false;
    if (s.steps[i].act == Act::copy && s.steps[i - 1].act != Act::wait) return false;
    if (s.steps[i].act == Act::raise && s.steps[i - 1].act == Act::wait &&
        is_for(call, s.steps[i].milestone, s.steps[i - 1].source_owner))
        return false;
    std::swap(s.steps[i - 1], s.steps[i]);
    return true;
}
// A wait for the milestone before the one that counts.
bool wait_for_less(const Call& call, Schedule& s, std::size_t i) {
    Step& step = s.steps[i];
    if (step.act != Act::wait) return false;
    const Step* before = nullptr;
    for (const Step& other : call.schedules[static_cast<std::size_t>(step.source_owner)].steps)
        if (other.act == Act::raise && other.milestone < step.milestone) before = &other;
    if (before == nullptr) return false;
    step.milestone = before->milestone;
    return true;
}
// Whether a rank waits for this before it raises the same milestone itself: then waiting for that rank
// instead is as good, and no mistake (the readers of one segment of a bcast).
bool passes_on(const Schedule& s, const Step& wait) {
    auto is = [&](Act act) {
        return [&, act](const Step& other) {
            return other.act == act && other.milestone == wait.milestone &&
                   (act == Act::raise || other.source_owner == wait.source_owner);
        };
    };
    auto waits = std::find_if(s.steps.begin(), s.steps.end(), is(Act::wait));
    return std::find_if(waits, s.steps.end(), is(Act::raise)) != s.steps.end();
}
bool wait_for_another(const Call& call, Schedule& s, std::size_t i) {
    Step& step = s.steps[i];
    if (step.act != Act::wait) return false;
    std::int32_t another = (step.source_owner + 1) % static_cast<std::int32_t>(call.schedules.size());
    if (passes_on(call.schedules[static_cast<std::size_t>(another)], step)) return false;
    step.source_owner = another;
    return true;
}
bool bend_source_index(const Call& call, Schedule& s, std::size_t i) {
    Step& step = s.steps[i];
    if (step.act != Act::copy) return false;
    std::int32_t blocks = extent(call, step.source_owner, step.source_area);
    step.source_index = blocks > 1 ? (step.source_index + 1) % blocks : 1;
    return true;
}
bool bend_target_index(const Call& call, Schedule& s, std::size_t i) {
    Step& step = s.steps[i];
    if (step.act != Act::copy) return false;
    std::int32_t blocks = extent(call, step.target_owner, step.target_area);
    step.target_index = blocks > 1 ? (step.target_index + 1) % blocks : 1;
    return true;
}
bool bend_source_owner(const Call& call, Schedule& s, std::size_t i) {
    if (s.steps[i].act != Act::copy) return false;
    s.steps[i].source_owner =
        (s.steps[i].source_owner + 1) % static_cast<std::int32_t>(call.schedules.size());
    return true;
}
bool bend_target_owner(const Call& call, Schedule& s, std::size_t i) {
    if (s.steps[i].act != Act::copy) return false;
    s.steps[i].target_owner =
        (s.steps[i].target_owner + 1) % static_cast<std::int32_t>(call.schedules.size());
    return true;
}

bool is_message(const Step& step) { return step.act == Act::send || step.act == Act::receive; }
bool bend_message(const Call& call, Schedule& s, std::size_t i) {
    Step& step = s.steps[i];
    if (!is_message(step)) return false;
    bool sends = step.act == Act::send;
    std::int32_t blocks = extent(call, sends ? step.source_owner : step.target_owner,
                                 sends ? step.source_area : step.target_area);
    if (blocks <= step.count) return false;
    std::int32_t& index = sends ? step.source_index : step.target_index;
    index += index + step.count < blocks ? 1 : -1;
    return true;
}
bool bend_peer(const Call& call, Schedule& s, std::size_t i) {
    Step& step = s.steps[i];
    if (!is_message(step)) return false;
    (step.act == Act::send ? step.target_owner : step.source_owner) =
        (step.peer() + 1) % static_cast<std::int32_t>(call.schedules.size());
    return true;
}

// Mutations of what only the builder's steps have.
bool forget_source(const Call&, Schedule& s, std::size_t i) {
    return s.steps[i].after_source && !(s.steps[i].after_source = false);
}
bool forget_target(const Call&, Schedule& s, std::size_t i) {
    return s.steps[i].after_target && !(s.steps[i].after_target = false);
}
bool end_early(const Call&, Schedule& s, std::size_t i) {
    if (s.steps[i].act == Act::complete) return false;
    return s.steps[i].count > 1 && s.steps[i].count-- > 1;
}
bool begin_late(const Call&, Schedule& s, std::size_t i) {
    Step& step = s.steps[i];
    if (step.count <= 1 || step.act == Act::complete) return false;
    const Place source = step.source(1);
    step.source_owner = step.act == Act::wait ? step.awaited(1) : source.owner;
    step.source_index = source.index;
    ++step.target_index;
    --step.count;
    return true;
}
bool turn(const Call&, Schedule& s, std::size_t i) {
    if (s.steps[i].act != Act::copy || s.steps[i].count == 1) return false;
    s.steps[i].along_owners = !s.steps[i].along_owners;
    return true;
}

const Named kFolded[] = {
    {"drop", drop},           {"forget source", forget_source}, {"forget target", forget_target},
    {"end early", end_early}, {"begin late", begin_late},       {"turn", turn},
};
const Named kPlain[] = {
    {"drop", drop},
    {"move earlier", move_earlier},
    {"wait for less", wait_for_less},
    {"wait for another", wait_for_another},
    {"bend source index", bend_source_index},
    {"bend target index", bend_target_index},
    {"bend source owner", bend_source_owner},
    {"bend target owner", bend_target_owner},
    {"bend message", bend_message},
    {"bend peer", bend_peer},
};

// Applies a mutation to each step of each rank in turn. Returns how many were tried.
int break_every_step(const Named& mutation, const topology::NodeMap& map, const Call& right) {
    int tried = 0;
    for (std::size_t r = 0; r < right.schedules.size(); ++r)
        for (std::size_t i = 0; i < right.schedules[r].steps.size(); ++i) {
            Call wrong = right;
            g_self = static_cast<std::int32_t>(r);
            if (!mutation.apply(right, wrong.schedules[r], i)) continue;
            ++tried;
            INFO(mutation.name << " at rank " << r << ", step " << i);
            CHECK(simulate(map, {wrong, wrong, wrong}).fault != "");
        }
    return tried;
}

// The same over a graph, on nodes of unequal size. least: as often each mutation must apply.
void break_aggregate(std::span<const Named> mutations, bool spell_out, const topology::NodeMap& map,
                     const Graph& graph, std::span<const Exchange> exchanges,
                     const algorithms::Parameters& parameters, int least) {
    const auto near = neighborhoods_of(graph);
    for (const Named& mutation : mutations) {
        int tried = 0;
        // That blocks for a mate are staged, it may know from the bundle that it has seen filled, too.
        auto apply = [&](const Call& call, Schedule& s, std::size_t i) {
            bool arrives = s.steps[i].act == Act::raise && s.steps[i].milestone == kArrived;
            return !(arrives && std::string_view(mutation.name) == "move earlier") &&
                   mutation.apply(call, s, i);
        };
        for (Exchange exchange : exchanges) {
            Call call = make_neighbor_call(*algorithms::find("aggregate"), exchange, map, near, parameters);
            for (Schedule& schedule : call.schedules)
                if (spell_out) schedule = spelled_out(schedule);
            INFO((exchange == Exchange::alltoall ? "alltoall" : "allgather"));
            tried += break_every_step({mutation.name, apply}, map, call);
        }
        INFO(mutation.name << " over " << graph.name);
        CHECK(tried > least);
    }
}
// From ranks 0 to 7 on four nodes to two more, each to one of them: so that no block of an allgather lies in
// two bundles, where either would do; and edges within nodes.
Graph each_to_one_node() {
    std::vector<Arc> arcs{{8, 10}, {10, 8}, {0, 8}};
    for (std::int32_t from = 0; from < 8; ++from) {
        arcs.push_back({from, (from + 4) % 8});
        arcs.push_back({from, from < 4 ? 8 : 9});
        if (from < 4) arcs.push_back({from, 10});
    }
    return from_arcs("each to one node", 11, arcs);
}
void break_aggregate(std::span<const Named> mutations, bool spell_out) {
    auto machine = [](const std::vector<std::uint64_t>& nodes) {
        return topology::make_node_map(nodes, std::vector<std::uint64_t>(nodes.size(), 0));
    };
    auto random = [](double density) {
        std::mt19937 numbers(11);
        return random_graph(7, density, true, numbers);
    };
    constexpr Exchange kBoth[] = {Exchange::alltoall, Exchange::allgather};
    break_aggregate(mutations, spell_out, machine({0, 1, 0, 1, 2, 1, 2}), random(0.6), kBoth, {}, 5);
    break_aggregate(mutations, spell_out, machine({0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 4}), each_to_one_node(),
                    kBoth, {.leaders = 1}, 4);
}

void break_all(std::span<const Named> mutations, bool spell_out) {
    for (const Named& mutation : mutations) {
        int tried = 0;
        for (const Row& row : rows())
            for (std::int32_t ranks = 2; ranks <= 7; ++ranks)
                for (const auto& map : machines(*row.algorithm, ranks))
                    for (std::int32_t segments : {1, 3, 6}) {
                        bool cut = row.algorithm->segmented && row.exchange == Exchange::bcast;
                        if (segments > 1 && !cut) continue;
                        Call call =
                            make_call(*row.algorithm, row.exchange, map, ranks / 2, segments, row.parameters);
                        for (Schedule& schedule : call.schedules)
                            if (spell_out) schedule = spelled_out(schedule);
                        INFO(to_text(row, map, ranks / 2, segments));
                        tried += break_every_step(mutation, map, call);
                    }
        CHECK(tried > 100);
    }
}

// The same over a random graph with repeated edges, each rank on a node of its own: partners on one node know
// more of each other than the arrivals tell.
void break_combining(std::span<const Named> mutations, bool spell_out, std::int32_t depth) {
    std::mt19937 random(11);
    const auto map = topology::make_node_map({0, 1, 2, 3, 4, 5, 6}, std::vector<std::uint64_t>(7, 0));
    const auto near = neighborhoods_of(random_graph(map.ranks(), 0.8, true, random));
    int tried = 0;
    for (const Named& mutation : mutations)
        for (Exchange exchange : {Exchange::alltoall, Exchange::allgather}) {
            // There a block may lie in two places, and either will do.
            if (exchange == Exchange::allgather && depth != 1) continue;
            Call call = make_neighbor_call(*algorithms::find("combining"), exchange, map, near,
                                           {.threshold = 2, .depth = depth});
            for (Schedule& schedule : call.schedules)
                if (spell_out) schedule = spelled_out(schedule);
            INFO((exchange == Exchange::alltoall ? "alltoall" : "allgather") << ", depth " << depth);
            tried += break_every_step(mutation, map, call);
        }
    CHECK(tried > 100);
}

}  // namespace

TEST_CASE("the simulator accepts what is right", "[schedule][mutations]") {
    CHECK(fault_of(by_hand(Exchange::bcast, {root_of_two(), leaf_of_two().raise(kDone).take()})) == "");
}

TEST_CASE("the simulator finds what is wrong", "[schedule][mutations]") {
    auto bcast = [](Schedule root, Schedule leaf) { return by_hand(Exchange::bcast, {root, leaf}); };
    Schedule leaf = leaf_of_two().raise(kDone).take();
    SECTION("wrong data") {
        require_fault("wrong data", bcast(root_of_two(), Builder().wait(0, kArrived).raise(kDone).take()));
    }
    SECTION("a rank touched before it is in the call") {
        require_fault(
            "without having waited",
            bcast(root_of_two(), Builder().copy({0, Area::send, 0}, {1, Area::recv, 0}).raise(kDone).take()));
    }
    SECTION("a race with the caller behind the call") {
        require_fault("while rank", bcast(Builder().raise(kArrived).raise(kDone).take(), leaf));
    }
    SECTION("deadlock") {
        Schedule both[2];
        for (std::int32_t r : {0, 1})
            both[r] = Builder().wait(1 - r, kArrived).raise(kArrived).raise(kDone).take();
        require_fault("deadlock", bcast(both[0], both[1]));
    }
    SECTION("a wait for what is never raised") {
        require_fault("never raises", bcast(Builder().raise(kDone).wait(1, kDone).take(), leaf));
    }
    SECTION("a copy that leaves its node") {
        require_fault("another node", bcast(root_of_two(), leaf), topology::make_node_map({1, 2}, {0, 0}));
    }
    SECTION("a place that does not exist") {
        require_fault(
            "does not exist",
            bcast(Builder().copy({0, Area::send, 0}, {0, Area::scratch, 0}).raise(kDone).take(), leaf));
    }
    SECTION("a target looked up before its owner has arrived") {
        Schedule late = leaf_of_two().copy({0, Area::recv, 0}, {0, Area::recv, 0}).raise(kDone).take();
        late.steps[1].after_source = true;
        require_fault("too late", by_hand(Exchange::alltoall, {root_of_two(), late}));
    }
    SECTION("a written send area") {
        require_fault("writes to a send area",
                      bcast(root_of_two(),
                            leaf_of_two().copy({1, Area::recv, 0}, {0, Area::send, 0}).raise(kDone).take()));
    }
    SECTION("a schedule without kDone") {
        require_fault("does not raise kDone",
                      bcast(Builder().raise(kArrived).raise(kDone).take(), leaf_of_two().take()));
    }
    SECTION("a copy after kDone") {
        require_fault("after kDone", bcast(root_of_two(), Builder()
                                                              .wait(0, kArrived)
                                                              .raise(kDone)
                                                              .copy({0, Area::send, 0}, {1, Area::recv, 0})
                                                              .take()));
    }
    SECTION("milestones that fall") {
        Schedule falls = Builder().raise(1).raise(2).raise(kDone).take();
        std::swap(falls.steps[0].milestone, falls.steps[1].milestone);
        require_fault("out of order", bcast(falls, leaf));
    }
    SECTION("a registry row that denies what is read or written") {
        Call call = bcast(root_of_two(), leaf);
        call.may_read_peer_send = false;
        require_fault("against its registry row", call);
    }
}

TEST_CASE("scratch needs the guard of the executor", "[schedule][mutations]") {
    // Eager alltoalls alone do not: a rank comes to the third when all are in the second, so out of the
    // first. But the root of a bcast waits for nobody, until its ring is full.
    auto map = topology::one_node(3);
    const auto& eager = *algorithms::find("eager");
    Call bcast = make_call(eager, Exchange::bcast, map);
    Call alltoall = make_call(eager, Exchange::alltoall, map);
    Call ring = make_call(*algorithms::find("segmented"), Exchange::bcast, map, 0, 3);
    for (const auto& calls : {Calls{bcast, bcast, bcast}, {ring, ring, ring}, {alltoall, bcast, alltoall}}) {
        CHECK(simulate(map, calls).fault == "");
        CHECK_THAT(simulate(map, calls, {.guarded = false}).fault, Catch::Contains("while rank"));
    }
}

TEST_CASE("staged send areas need the guard of the executor", "[schedule][mutations]") {
    auto map = topology::one_node(3);
    Call direct = make_call(*algorithms::find("direct"), Exchange::bcast, map);
    const Calls calls{direct, direct, direct};
    CHECK_THAT(simulate(map, calls, {.guarded = false, .staged = {true}}).fault,
               Catch::Contains("while rank"));
}

TEST_CASE("no step of any algorithm can be left out, moved or bent", "[schedule][long][mutations]") {
    SECTION("as the builder folds them") { break_all(kFolded, false); }
    SECTION("spelled out") { break_all(kPlain, true); }
}

TEST_CASE("no step of aggregate can be left out, moved or bent", "[schedule][long][mutations]") {
    SECTION("as the builder folds them") { break_aggregate(kFolded, false); }
    SECTION("spelled out") { break_aggregate(kPlain, true); }
}

TEST_CASE("no step of combining can be left out, moved or bent", "[schedule][long][mutations]") {
    for (std::int32_t depth : {1, 0}) {
        break_combining(kFolded, false, depth);
        break_combining(kPlain, true, depth);
    }
}

TEST_CASE("a schedule spelled out is as right as the one that the builder wrote", "[schedule][mutations]") {
    for (const Row& row : rows())
        for (const auto& map : machines(*row.algorithm, 9)) {
            Call call = make_call(*row.algorithm, row.exchange, map, 4, row.algorithm->segmented ? 6 : 1,
                                  row.parameters);
            for (Schedule& schedule : call.schedules) schedule = spelled_out(schedule);
            INFO(to_text(row, map, 4, 1));
            CHECK(simulate(map, {call, call, call}).fault == "");
        }
}
