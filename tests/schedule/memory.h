// SPDX-License-Identifier: BSD-3-Clause
//
// Symbolic memory of the simulator: each cell holds one block's name and remembers who touched it when, so
// that a touch that is not ordered behind the last ones shows.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace coco::simulator {

// How many steps of each rank one knows to have happened.
using Clock = std::vector<std::uint32_t>;

inline void learn(Clock& clock, const Clock& other) {
    for (std::size_t r = 0; r < clock.size(); ++r)
        clock[r] = std::max(clock[r], other[r]);  // which compilers do for several at once
}

class Cell {
  public:
    std::int64_t value() const { return value_; }
    // Messages that read or write it, now.
    std::int32_t sending = 0;
    bool receiving = false;
    // Both return the rank whose touch may happen at the same time, or -1. `clock` is that of `rank`.
    std::int32_t read(std::int32_t rank, const Clock& clock) {
        if (!knows(clock, write_)) return write_.rank;
        for (Touch& r : reads_)
            if (r.rank == rank) {
                r.time = now(rank, clock);
                return -1;
            }
        reads_.push_back({rank, now(rank, clock)});
        return -1;
    }
    std::int32_t write(std::int32_t rank, const Clock& clock, std::int64_t value) {
        if (!knows(clock, write_)) return write_.rank;
        for (const Touch& r : reads_)
            if (!knows(clock, r)) return r.rank;
        reads_.clear();
        write_ = {rank, now(rank, clock)};
        value_ = value;
        return -1;
    }

  private:
    struct Touch {
        std::int32_t rank;
        std::uint32_t time;
    };
    static std::uint32_t now(std::int32_t rank, const Clock& clock) {
        return clock[static_cast<std::size_t>(rank)];
    }
    static bool knows(const Clock& clock, Touch t) { return t.rank < 0 || now(t.rank, clock) >= t.time; }

    std::int64_t value_ = -1;
    Touch write_{-1, 0};
    std::vector<Touch> reads_;
};

}  // namespace coco::simulator
