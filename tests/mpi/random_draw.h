// SPDX-License-Identifier: BSD-3-Clause
//
// The sources from which the random tests draw: generators, sizes, sides of calls.
#pragma once
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "call.h"
#include "types.h"

namespace test {

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() { return state_ = mix(state_); }
    int below(int bound) { return static_cast<int>(next() % static_cast<std::uint64_t>(bound)); }
    bool once_in(int times) { return below(times) == 0; }
    template <typename T>
    const T& of(const std::vector<T>& values) {
        return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
    }

  private:
    std::uint64_t state_;
};

inline constexpr int kLargestBlockBytes = 256 << 10;
// 0 or log-uniform up to the largest block, which shrinks when many ranks share few cores.
inline int random_bytes(Random& common, int ranks) {
    if (common.once_in(12)) return 0;
    const double top = std::log2(common.once_in(20) ? kLargestBlockBytes : kLargestBlockBytes / ranks);
    return static_cast<int>(std::exp2(top * static_cast<double>(common.below(10001)) / 10000));
}

inline Side spread_side(Random& own, const Type& type, const std::vector<int>& units, bool bytes) {
    Side side;
    MPI_Aint lower, extent;
    MPI_Type_get_extent(type.handle, &lower, &extent);
    int next =
        units.size() == 1 ? 0 : own.below(3);  // MPICH's allgatherv of one rank ignores the displacement
    for (int u : units) {
        side.counts.push_back(u / type.units);
        side.displacements.push_back(next);
        next +=
            u / type.units + 3 + own.below(4);  // the gap is wider than any overhang of a type's true bounds
    }
    side.types.assign(bytes ? std::max<std::size_t>(units.size(), 2) : 1, type.handle);
    if (bytes)
        for (int& d : side.displacements) d *= static_cast<int>(extent);
    return side;
}

// Made once, and shared by all players.
inline const std::vector<Family>& lasting_families() {
    static const std::vector<Family> families{int_family(), double_int_family(), byte_family(),
                                              double_family()};
    return families;
}

// pools: whether regions may lie in the pools, which are one thread's.
inline Placement random_placement(Random& own, bool pools) {
    const auto drawn = static_cast<Placement>(own.below(kDrawnPlacements));
    const bool pooled = drawn == Placement::fixed || drawn == Placement::stack;
    return pooled && !pools ? Placement::mapped : drawn;
}

inline const Type& receiving_type(Random& random, const Family& family) {
    for (;;)
        if (const Type& type = random.of(family.types); type.receives) return type;
}

// Plays so many random calls, told by the words of the command line: SEED CALLS. Player(seed) has
// play(), false if bytes were wrong. before: checks to make first.
template <class Player>
int play_all(
    int argc, char** argv, const char* name, int default_calls, void (*before)() = [] {}) {
    char pool[Region::kPoolBytes];
    Region::stack_pool = pool;
    MPI_Init(&argc, &argv);
    const std::uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
    const int calls = argc > 2 ? std::atoi(argv[2]) : default_calls;
    before();
    {
        Player player(seed);
        for (int i = 0; i < calls && failures < 5; ++i)
            if (!player.play())
                std::fprintf(stderr, "  in call %d of seed %llu\n", i, static_cast<unsigned long long>(seed));
    }
    const int verdict = finish(name);
    MPI_Finalize();
    return verdict;
}

}  // namespace test
