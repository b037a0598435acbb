// SPDX-License-Identifier: BSD-3-Clause
#include "comm/crowding.h"

#include <catch2/catch.hpp>
#include <initializer_list>

using namespace coco;
using namespace coco::comm;

namespace {

constexpr std::uint64_t kHost = 70, kOther = 71;

FoldedCpus cpus(std::initializer_list<int> numbers, std::int32_t quota = 0) {
    os::Cpus all{};
    for (const int number : numbers) all.mask[number / 64] |= std::uint64_t{1} << (number % 64);
    all.quota = quota;
    return fold(all);
}

}  // namespace

TEST_CASE("ranks crowd a host where they outnumber the CPUs of all of them", "[crowding]") {
    Crowding crowding;
    crowding.add(kHost, cpus({0}), false);
    crowding.add(kHost, cpus({1}), false);
    CHECK_FALSE(crowding.is_crowded(kHost));
    CHECK_FALSE(crowding.is_any_crowded());
    crowding.add(kHost, cpus({0, 1}), false);
    CHECK(crowding.is_crowded(kHost));
    CHECK(crowding.is_any_crowded());
    crowding.add(kHost, cpus({2}), false);
    CHECK(crowding.is_crowded(kHost));
    crowding.add(kHost, cpus({3, 100}), false);
    CHECK_FALSE(crowding.is_crowded(kHost));
}

TEST_CASE("each host is counted by itself, in whatever order its ranks come", "[crowding]") {
    Crowding crowding;
    for (int i = 0; i < 3; ++i) {
        crowding.add(kHost, cpus({0, 1, 2}), false);
        crowding.add(kOther, cpus({0, 1}), false);
    }
    CHECK_FALSE(crowding.is_crowded(kHost));
    CHECK(crowding.is_crowded(kOther));
    CHECK(crowding.is_any_crowded());
    CHECK_FALSE(crowding.is_crowded(99));
}

TEST_CASE("a control group's quota and a job of more ranks than the host has CPUs crowd it, too",
          "[crowding]") {
    Crowding granted;
    granted.add(kHost, cpus({0, 1, 2, 3}, 1), false);
    CHECK_FALSE(granted.is_crowded(kHost));
    granted.add(kHost, cpus({0, 1, 2, 3}), false);
    CHECK(granted.is_crowded(kHost));
    // Whichever rank has the tightest quota, and in whatever order they come.
    Crowding several;
    for (const std::int32_t quota : {0, 3, 2, 0}) several.add(kHost, cpus({0, 1, 2, 3}, quota), false);
    CHECK(several.is_crowded(kHost));
    Crowding enough;
    for (const std::int32_t quota : {0, 3, 0}) enough.add(kHost, cpus({0, 1, 2, 3}, quota), false);
    CHECK_FALSE(enough.is_crowded(kHost));
    Crowding part;
    part.add(kHost, cpus({0, 1}), false);
    part.add(kHost, cpus({0, 1}), true);
    CHECK(part.is_crowded(kHost));
}

TEST_CASE("CPUs beyond those that a card has room for are folded, and never seem to be more", "[crowding]") {
    const FoldedCpus folded = cpus({5, 5 + 64 * FoldedCpus::kWords, 8000});
    Crowding crowding;
    for (int i = 0; i < 2; ++i) crowding.add(kHost, folded, false);
    CHECK_FALSE(crowding.is_crowded(kHost));
    crowding.add(kHost, folded, false);
    CHECK(crowding.is_crowded(kHost));
}
