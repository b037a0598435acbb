// SPDX-License-Identifier: BSD-3-Clause
//
// The steps that the builder makes of single waits and blocks.
#include <catch2/catch.hpp>

#include "algorithms/algorithm.h"

using namespace coco;
using schedule::Act;
using schedule::Area;
using schedule::Builder;
using schedule::kArrived;
using schedule::kDone;
using schedule::Step;

namespace {

std::vector<Step> steps_of(Builder& builder) { return builder.take().steps; }

}  // namespace

TEST_CASE("a wait for an owner's arrival becomes part of the copy behind it", "[schedule]") {
    Builder builder;
    builder.wait(1, kArrived).wait(2, kArrived).wait(3, kArrived);
    builder.copy({3, Area::send, 0}, {1, Area::recv, 3});
    auto steps = steps_of(builder);
    REQUIRE(steps.size() == 2);
    CHECK(steps[0].act == Act::wait);
    CHECK(steps[0].awaited(0) == 2);
    CHECK(steps[0].count == 1);
    CHECK(steps[1].after_source);
    CHECK(steps[1].after_target);
}

TEST_CASE("one owner of both places is waited for before the target is looked up", "[schedule]") {
    Builder builder;
    builder.wait(1, kArrived).copy({1, Area::send, 1}, {1, Area::recv, 1});
    auto steps = steps_of(builder);
    REQUIRE(steps.size() == 1);
    CHECK(steps[0].after_target);
    CHECK_FALSE(steps[0].after_source);
}

TEST_CASE("blocks in a row are one step", "[schedule]") {
    Builder builder;
    SECTION("along owners, each after its arrival") {
        for (std::int32_t peer : {1, 2, 3})
            builder.wait(peer, kArrived).copy({peer, Area::send, 0}, {0, Area::recv, peer});
    }
    SECTION("along indices") {
        for (std::int32_t i : {1, 2, 3}) builder.copy({0, Area::send, i}, {0, Area::scratch, i});
    }
    auto steps = steps_of(builder);
    REQUIRE(steps.size() == 1);
    CHECK(steps[0].count == 3);
}

TEST_CASE("blocks that do not go on where the last one ended are steps of their own", "[schedule]") {
    Builder builder;
    builder.copy({1, Area::send, 0}, {0, Area::recv, 1});
    SECTION("another target") { builder.copy({2, Area::send, 0}, {0, Area::recv, 3}); }
    SECTION("a wait in between") { builder.wait(2, kArrived).copy({2, Area::send, 0}, {0, Area::recv, 2}); }
    SECTION("both the owner and the index") { builder.copy({2, Area::send, 1}, {0, Area::recv, 2}); }
    SECTION("another area") { builder.copy({2, Area::recv, 0}, {0, Area::recv, 2}); }
    CHECK(steps_of(builder).size() == 2);
}

TEST_CASE("other waits stay where they are", "[schedule]") {
    Builder builder;
    builder.wait(1, 5).wait(2, 5).wait(3, kDone).copy({1, Area::send, 0}, {0, Area::recv, 1});
    auto steps = steps_of(builder);
    REQUIRE(steps.size() == 3);
    CHECK(steps[0].count == 2);
    CHECK_FALSE(steps[2].after_source);
}

TEST_CASE("the plain pull is a handful of steps on any number of ranks", "[schedule]") {
    auto map = topology::one_node(64);
    for (std::int32_t r = 0; r < 64; ++r)
        CHECK(algorithms::find("naive")
                  ->make_schedule({algorithms::Exchange::alltoall, r, &map})
                  .steps.size() <= 7);
}
