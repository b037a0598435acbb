// SPDX-License-Identifier: BSD-3-Clause
//
// The test of the test: what the explorer finds in programs of a few operations, of which it is known what
// the C++ memory model allows; and that it finds each execution of programs drawn by chance, and each once,
// as a search does that knows no shortcut.
#include <catch2/catch.hpp>
#include <random>

#include "explorer.h"
#include "memory.h"
#include "naive.h"

using namespace coco::model;

namespace {

std::uint64_t* g_words;

void do_step(const Step& step) {
    std::uint64_t* word = g_words + step.location;
    if (step.does == Does::load) load(word, 8, step.order, nullptr);
    if (step.does == Does::store) store(word, 8, 1, step.order, nullptr);
    if (step.does == Does::modify)
        modify(
            word, 8, [](Value v) { return v + 1; }, step.order, nullptr);
}

Result explore(const Program& program) {
    const Scenario scenario{
        .name = "litmus",
        .ranks = static_cast<int>(program.size()),
        .looks = 0,
        .prepare = [] { g_words = static_cast<std::uint64_t*>(take_shared(0, 64, 64)); },
        .play =
            [&](int rank) {
                for (const Step& step : program[static_cast<std::size_t>(rank)]) do_step(step);
            },
    };
    return coco::model::explore(scenario, {}, true);
}

Step put(int location, Order order = Order::relaxed) { return {Does::store, location, order}; }
Step get(int location, Order order = Order::relaxed) { return {Does::load, location, order}; }
Step add(int location, Order order = Order::relaxed) { return {Does::modify, location, order}; }
constexpr Order kAcquire = Order::acquire, kRelease = Order::release, kSeqCst = Order::seq_cst;

// How many executions there are.
std::size_t count(const Program& program) { return explore(program).signatures.size(); }

Step draw(std::mt19937& random) {
    constexpr Order kOrders[] = {Order::relaxed, Order::acquire, Order::release, Order::acq_rel,
                                 Order::seq_cst};
    const auto does = static_cast<Does>(random() % 3);
    Order order = kOrders[random() % 5];
    if (does == Does::load && order == Order::release) order = Order::acquire;
    if (does == Does::store && order == Order::acquire) order = Order::release;
    if (does != Does::modify && order == Order::acq_rel) order = Order::seq_cst;
    return {does, static_cast<int>(random() % 2), order};
}

Program draw(std::mt19937& random, std::size_t threads, std::size_t steps) {
    Program program(threads);
    for (auto& thread : program)
        for (std::size_t i = 0; i < steps; ++i) thread.push_back(draw(random));
    return program;
}

}  // namespace

TEST_CASE("what the memory model allows, and no more", "[model]") {
    // Both loads may miss the other thread's store, but for seq_cst.
    CHECK(count({{put(0), get(1)}, {put(1), get(0)}}) == 4);
    CHECK(count({{put(0, kRelease), get(1, kAcquire)}, {put(1, kRelease), get(0, kAcquire)}}) == 4);
    CHECK(count({{put(0, kSeqCst), get(1, kSeqCst)}, {put(1, kSeqCst), get(0, kSeqCst)}}) == 3);
    // A message and its flag: seen without what was written before only where an order is relaxed.
    CHECK(count({{put(0), put(1)}, {get(1), get(0)}}) == 4);
    CHECK(count({{put(0), put(1, kRelease)}, {get(1), get(0)}}) == 4);
    CHECK(count({{put(0), put(1)}, {get(1, kAcquire), get(0)}}) == 4);
    CHECK(count({{put(0), put(1, kRelease)}, {get(1, kAcquire), get(0)}}) == 3);
    // Also by way of a third thread's read-modify-write of the flag; not where that is a store.
    CHECK(count({{put(0), put(1, kRelease)}, {add(1)}, {get(1, kAcquire), get(0)}}) == 9);
    CHECK(count({{put(0), put(1, kRelease)}, {put(1)}, {get(1, kAcquire), get(0)}}) == 10);
    // No load reads what its own thread stores later because of it.
    CHECK(count({{get(0), put(1)}, {get(1), put(0)}}) == 3);
    // Loads of one location do not go back.
    CHECK(count({{put(0)}, {get(0), get(0)}}) == 3);
    // No read-modify-write is lost.
    CHECK(count({{add(0)}, {add(0)}, {add(0)}}) == 6);
    // The orders of stores to two locations need not agree, but for seq_cst.
    CHECK(count({{put(0, kRelease), put(1, kRelease)}, {put(1, kRelease), put(0, kRelease)}}) == 4);
    CHECK(count({{put(0, kSeqCst), put(1, kSeqCst)}, {put(1, kSeqCst), put(0, kSeqCst)}}) == 3);
    // A seq_cst read-modify-write is no fence for an acquiring load behind it.
    CHECK(count({{put(0, kSeqCst), get(1, kSeqCst)}, {add(1, kSeqCst), get(0, kAcquire)}}) == 4);
    CHECK(count({{put(0, kSeqCst), get(1, kSeqCst)}, {add(1, kSeqCst), get(0, kSeqCst)}}) == 3);
}

TEST_CASE("each execution is found, and found once", "[model]") {
    std::mt19937 random(11);
    constexpr std::size_t kSizes[][2] = {{2, 3}, {2, 4}, {3, 2}, {3, 3}};
    for (int i = 0; i < 200; ++i) {
        const auto& size = kSizes[i % 4];
        const Program program = draw(random, size[0], size[1]);
        const Result result = explore(program);
        INFO("program " << i);
        CHECK(result.error == "");
        CHECK(result.signatures == executions_of(program));
        CHECK_FALSE(result.repeated);
    }
}
