// SPDX-License-Identifier: BSD-3-Clause
#include "races.h"

namespace coco::model {
namespace {

using Access = Races::Access;

bool conflict(Access a, Access b) {
    const bool writes =
        a == Access::write || b == Access::write || a == Access::atomic_write || b == Access::atomic_write;
    const bool both_atomic = a >= Access::atomic_read && b >= Access::atomic_read;
    return writes && !both_atomic;
}

constexpr const char* kNames[] = {"a read", "a write", "an atomic read", "an atomic write"};

std::string describe(int cell, int thread, Access access, int other_thread, Access other) {
    const std::size_t at = static_cast<std::size_t>(cell) * kCellBytes;
    return std::string("race: ") + kNames[static_cast<int>(access)] + " by rank " + std::to_string(thread) +
           " and " + kNames[static_cast<int>(other)] + " by rank " + std::to_string(other_thread) +
           " at offset " + std::to_string(at % kRankBytes) + " of rank " + std::to_string(at / kRankBytes);
}

}  // namespace

void Races::begin() { ++run_; }

std::string Races::note(int thread, const Clock& known, int cell, std::size_t cells, Access access) {
    for (std::size_t c = static_cast<std::size_t>(cell); c < static_cast<std::size_t>(cell) + cells; ++c) {
        Cell& here = cells_[c];
        if (here.run != run_) here = {.run = run_};
        for (int t = 0; t < kThreadsMost; ++t)
            for (int a = 0; a < 4; ++a)
                // An access behind n operations of its thread happens before whoever knows of one more.
                if (t != thread && conflict(access, static_cast<Access>(a)) && here.of[a][t] > known[t])
                    return describe(static_cast<int>(c), thread, access, t, static_cast<Access>(a));
        here.of[static_cast<int>(access)][thread] =
            static_cast<std::uint16_t>(known[static_cast<std::size_t>(thread)] + 1);
    }
    return {};
}

}  // namespace coco::model
