// SPDX-License-Identifier: BSD-3-Clause
//
// A schedule: the steps of one rank, as data. It depends on the shape alone (collective, rank, node map,
// root, segments, parameters): no addresses, byte counts, datatypes, time or environment. A schedule is made
// once for a shape and kept with the communicator. Exec walks it, and the simulator in tests/schedule proves
// it.
#pragma once
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "schedule/step.h"

namespace coco::schedule {

struct Schedule {
    std::vector<Step> steps;
    // How many blocks of scratch this rank owns in a call. Each has room for one block, or one segment.
    std::int32_t scratch_blocks = 0;
    // Scratch blocks 0 to left_blocks - 1 are left for mates: copies of the send blocks from left_first on,
    // of which mates read all but this rank's own. Exec may show mates the send blocks themselves.
    std::int32_t left_first = 0, left_blocks = 0;
};

// Makes a schedule from copies of single blocks and waits for single ranks, in the order in which its
// functions are called, and in as few steps as it can. A wait for a rank's arrival just before a copy that
// touches an area of that rank becomes part of the copy. A copy or a wait that goes on where the step before
// it ended lengthens that step. Requires (copy): the places are inside their areas.
class Builder {
  public:
    Builder& copy(Place source, Place target);
    Builder& raise(Milestone milestone);
    Builder& wait(std::int32_t rank, Milestone milestone);
    // first: a place in an area of the rank whose schedule is made. Requires: blocks > 0.
    Builder& send(std::int32_t to, Place first, std::int32_t blocks);
    Builder& receive(std::int32_t from, Place first, std::int32_t blocks);
    Builder& complete(std::int32_t left = 0);
    Builder& scratch(std::int32_t blocks) {
        COCO_CHECK(blocks >= 0, "a schedule takes no or some blocks of scratch");
        schedule_.scratch_blocks = blocks;
        return *this;
    }
    // Says that the first blocks of scratch are left for mates. Requires: the schedule has the copies.
    Builder& left(std::int32_t first, std::int32_t blocks) {
        COCO_CHECK(first >= 0 && blocks > 0, "blocks that are left are blocks of the send area");
        schedule_.left_first = first;
        schedule_.left_blocks = blocks;
        return *this;
    }
    Schedule take();

  private:
    bool fold_arrival(std::int32_t rank);
    void write_arrivals();
    void append_wait(std::int32_t rank, Milestone milestone);
    bool lengthen(const Step& copy);
    Builder& append(const Step& step);

    Schedule schedule_;
    std::int32_t under_way_ = 0;          // messages that were started and not completed
    std::int64_t raised_ = -1;            // the last milestone that was raised
    std::vector<std::int32_t> arrivals_;  // waits for kArrived that a copy may still take in
};

}  // namespace coco::schedule
