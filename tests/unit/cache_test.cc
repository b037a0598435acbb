// SPDX-License-Identifier: BSD-3-Clause
//
// bench/cache: traces whose misses are counted by hand, and the paper's formula where it is exact.
#include <catch2/catch.hpp>

#include "bench/cache/formula.h"

namespace coco::cache {
namespace {

using algorithms::Exchange;

// Both caches of a core: two sets of two ways, and four of two.
const Machine kTiny{"tiny", 3, 2, {{256, 2}, {512, 2}}, "", 64};

// A cache that is ideal, as the formula has it, and holds all that a rank touches.
Machine ideal(std::uint64_t ranks) { return {"ideal", ranks, 1, {{65536, 1024}}, "", 64}; }

// Misses of all ranks in the first level.
Count first_level(const Machine& machine, const char* algorithm, const Call& call, const Replay& how) {
    return replay(machine, call, how, schedules_of(*algorithms::find(algorithm), call))[0];
}

}  // namespace

TEST_CASE("a cache gives up the least recently used line of a set", "[cache]") {
    using enum Cache::Found;
    Cache cache({256, 2}, 64);
    for (const Line line : {0, 2, 1}) CHECK(cache.touch(line) == absent);
    CHECK(cache.touch(0) == here);
    CHECK(cache.touch(4) == absent);  // in place of 2
    CHECK(cache.touch(0) == here);
    CHECK(cache.touch(2) == absent);  // in place of 4
    CHECK(cache.touch(1) == here);    // of the other set
    cache.lose(0);
    CHECK(cache.touch(4) == absent);  // in place of what was lost
    CHECK(cache.touch(2) == here);
    cache.lose(2);
    CHECK(cache.touch(2) == lost);
    CHECK(cache.touch(2) == here);
}

TEST_CASE("what a core writes other cores lose", "[cache]") {
    Machine machine = kTiny;
    machine.levels.push_back({4096, 4, true});
    Caches caches(machine, {0, 0, 1}, 64, 0);
    for (const int core : {0, 1, 2}) caches.read(core, 5);
    CHECK(caches.counts() ==
          std::vector<Count>{{3, 0}, {3, 0}, {2, 0}});  // 1 finds it in the cache of 0 and 1
    caches.write(1, 5);
    caches.reset_counts();
    caches.write(1, 5);
    CHECK(caches.counts() == std::vector<Count>(3));
    caches.read(0, 5);
    CHECK(caches.counts() == std::vector<Count>{{1, 1}, {1, 1}, {0, 0}});
    caches.read(2, 5);
    CHECK(caches.counts() == std::vector<Count>{{2, 2}, {2, 2}, {1, 1}});
}

TEST_CASE("a prefetcher brings in the next line of a page", "[cache]") {
    Caches caches(kTiny, {0, 0, 1}, 64, 4);
    for (const Line line : {0, 1, 2, 3, 4}) caches.read(0, line);
    CHECK(caches.counts() == std::vector<Count>{{3, 0}, {3, 0}});  // 0 and 2; 4 is on the next page
    caches.write(1, 1);
    caches.read(0, 1);
    CHECK(caches.counts()[1] == Count{5, 1});
}

TEST_CASE("the replay is the formula where all fits, and lines are whole", "[cache]") {
    const Replay cold{.warm = false};
    const auto check = [&](const char* name, const Call& call, double times) {
        INFO(name << ", " << call.ranks << " ranks, " << call.block_bytes << " bytes");
        const Count count = first_level(ideal(call.ranks), name, call, cold);
        CHECK(static_cast<double>(count.missed - count.lost) ==
              times * call.ranks * *formula(name, call, 64, 65536));
    };
    for (const std::int32_t ranks : {4, 16, 64}) {
        for (const Exchange exchange : {Exchange::alltoall, Exchange::allgather})
            check("naive", {exchange, ranks, 1, 64}, 1);
        check("morton", {Exchange::alltoall, ranks, 1, 64}, 1);
    }
    check("morton", {Exchange::alltoall, 64, 1, 8}, 1);
    // A share has four senders and four receivers, half a line of each: what equation 3 allows for. Two
    // ranks that write a line also take it from each other.
    check("morton", {Exchange::alltoall, 16, 1, 8}, 2);
}

TEST_CASE("of written buffers a rank has its own", "[cache]") {
    const Call call{Exchange::alltoall, 16, 1, 64};
    CHECK(first_level(ideal(16), "naive", call, {}) == Count{16 * 15, 0});
    // Eight ranks write four of their own blocks, and four ranks read four of their own.
    CHECK(first_level(ideal(16), "morton", call, {}) == Count{16 * 32 - 8 * 4 - 4 * 4, 0});
}

TEST_CASE("equal seeds give equal figures", "[cache]") {
    const Machine& machine = machines()[1];
    const Call call{Exchange::alltoall, 24, 2, 2048};
    const auto schedules = schedules_of(*algorithms::find("numa_morton"), call);
    const auto with_seed = [&](std::uint32_t seed) {
        return replay(machine, call, {.seed = seed, .random_turns = true}, schedules);
    };
    CHECK(with_seed(7) == with_seed(7));
    CHECK(with_seed(7) != with_seed(8));
}

TEST_CASE("tiled touches as few lines as there are", "[cache]") {
    // Alltoall: 8 lines to read and 8 to write; one of these is its own, and of 8 ranks one of those.
    CHECK(first_level(ideal(64), "tiled", {Exchange::alltoall, 64, 1, 8}, {}).missed == 64 * 16 - 64 - 8);
    // Allgather: a line of each member and of each receiver that it serves, but for its own two.
    CHECK(first_level(ideal(64), "tiled", {Exchange::allgather, 64, 1, 8}, {}).missed == 64 * (16 - 2));
}

TEST_CASE("machines that cannot be are told in a line", "[cache]") {
    for (const Machine& one : machines()) CHECK(wrong(one).empty());
    Machine machine = kTiny;
    machine.levels[1] = {512, 16};
    CHECK(wrong(machine) == "a cache of 512 bytes is smaller than its 16 ways of a line each");
    machine.line_bytes = 48;
    CHECK(wrong(machine) == "a line has a power of two of bytes, 8 to 4096");
}

}  // namespace coco::cache
