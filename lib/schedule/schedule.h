// SPDX-License-Identifier: BSD-3-Clause
//
// A schedule: the steps of one rank, as data. It depends on the shape alone (collective, rank, node map,
// root, segments, parameters): no addresses, byte counts, datatypes, time or environment. Made once per shape
// and kept with the communicator; walked by exec, proved by tests/schedule's simulator.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "schedule/step.h"

namespace coco::schedule {

struct Schedule {
    std::vector<Step> steps;
    // How many blocks of scratch this rank owns in a call (each at most one block, or one segment, long).
    std::int32_t scratch_blocks = 0;
};

// Appends steps. Requires (copy): places inside their areas. The order of calls is the order of steps.
class Builder {
  public:
    Builder& copy(Place source, Place target) {
        schedule_.steps.push_back(
            {Act::copy, source.area, target.area, source.owner, source.index, target.owner, target.index, 0});
        return *this;
    }
    Builder& raise(Milestone milestone) {
        schedule_.steps.push_back({Act::raise, Area::send, Area::send, 0, 0, 0, 0, milestone});
        return *this;
    }
    Builder& wait(std::int32_t rank, Milestone milestone) {
        schedule_.steps.push_back({Act::wait, Area::send, Area::send, rank, 0, 0, 0, milestone});
        return *this;
    }
    Builder& scratch(std::int32_t blocks) {
        schedule_.scratch_blocks = blocks;
        return *this;
    }
    Schedule take() { return std::move(schedule_); }

  private:
    Schedule schedule_;
};

}  // namespace coco::schedule
