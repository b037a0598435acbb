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
        Step step{};
        step.act = Act::copy;
        step.source_area = source.area;
        step.target_area = target.area;
        step.source_owner = source.owner;
        step.source_index = source.index;
        step.target_owner = target.owner;
        step.target_index = target.index;
        schedule_.steps.push_back(step);
        return *this;
    }
    Builder& raise(Milestone milestone) { return sync(Act::raise, 0, milestone); }
    Builder& wait(std::int32_t rank, Milestone milestone) { return sync(Act::wait, rank, milestone); }
    Builder& scratch(std::int32_t blocks) {
        schedule_.scratch_blocks = blocks;
        return *this;
    }
    Schedule take() { return std::move(schedule_); }

  private:
    Builder& sync(Act act, std::int32_t rank, Milestone milestone) {
        Step step{};
        step.act = act;
        step.source_owner = rank;
        step.milestone = milestone & kDone;
        schedule_.steps.push_back(step);
        return *this;
    }

    Schedule schedule_;
};

}  // namespace coco::schedule
