// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a scenario, a few ranks that call the library's code, in every way that the C++ memory model allows.
//
// The explorer goes through execution graphs (graph.h). A run follows one graph and then adds events, one
// thread after the other. Where a load may read several stores, or a store may come at several places, copies
// of the graph are put by for later runs. So are, when a store is added, graphs in which loads that are there
// already read it: what was added after such a load and does not lead to the store is taken away. That each
// graph comes about once only is due to the rule by which this is done: nothing is taken away that is not as
// it would have been added last (M. Kokologiannakis, I. Marmanis, V. Gladstein, V. Vafeiadis: Truly
// stateless, optimal dynamic partial order reduction, POPL 2022).
//
// A look that fails while a thread waits changes nothing, so a thread need not look in vain more often than
// it takes to run the code that waits: behind that it stops (look_again()), and the run counts only if it
// would have gone on. A thread whose last look has seen the last store there is would wait for ever: that is
// a deadlock. One that has slept for the doorbell without need wakes by its bound: that is a missed wake.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph.h"
#include "races.h"

namespace coco::model {

struct Scenario {
    std::string name;
    int ranks;
    int looks;  // so many looks of each rank, in all, may be in vain
    std::function<void()> prepare;
    std::function<void(int rank)> play;
};

// An operation of the code at a place: the address behind the call of an atomic operation.
using Place = const void*;
enum class Does : std::uint8_t { load, store, modify };
struct Operation {
    Does does;
    Order order;
    auto operator<=>(const Operation&) const = default;
};

// The way in which a place is broken on purpose.
enum class Fault : std::uint8_t {
    none,
    weaker,    // relaxed
    stronger,  // seq_cst
    left_out,  // a store is not done
    at_once,   // a load finds the largest number there is, which ends each wait
};
using Mutation = std::map<Place, Fault>;

struct Result {
    std::uint64_t executions = 0;       // ended, all ranks
    std::uint64_t cut = 0;              // some rank has looked in vain once too often
    std::uint64_t missed = 0;           // some rank sleeps to its bound though what it waits for is there
                                        // (an error where its bell was rung for that)
    std::uint64_t goals = 0;            // how often some rank has come to where it should sometimes come
    std::string error;                  // of the first execution that is wrong; the others are not looked at
    std::map<Place, Operation> places;  // where atomic operations were done
    std::set<std::vector<std::uint64_t>> signatures;  // of executions, where asked for
    bool repeated = false;                            // there were equal ones
};

Result explore(const Scenario& scenario, const Mutation& mutation = {}, bool keep_signatures = false);

// Called by the code that is run. Outside a run, and for memory that is not shared, they do what is said.
Value load(const volatile void* at, std::size_t bytes, Order order, Place place);
void store(volatile void* at, std::size_t bytes, Value value, Order order, Place place);
Value modify(volatile void* at, std::size_t bytes, const std::function<Value(Value)>& change, Order order,
             Place place);
void plain_access(const volatile void* at, std::size_t bytes, bool writes);
// The thread waits, and has looked in vain.
void look_again();
// The thread sleeps while the word is as expected, to its bound.
void sleep_while(const volatile void* word, Value expected);
// Says that the run has come to where it should sometimes come.
void note_goal();
// Says that the run is wrong unless `holds`.
void expect(bool holds, const char* what);

}  // namespace coco::model
