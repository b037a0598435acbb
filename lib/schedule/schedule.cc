// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/schedule.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace coco::schedule {

// Whether a wait for the arrival of `rank` came just before. If so, it is taken out: the caller makes it part
// of a copy.
bool Builder::fold_arrival(std::int32_t rank) { return std::erase(arrivals_, rank) != 0; }

void Builder::write_arrivals() {
    for (std::int32_t rank : arrivals_) append_wait(rank, kArrived);
    arrivals_.clear();
}

void Builder::append_wait(std::int32_t rank, Milestone milestone) {
    if (!schedule_.steps.empty()) {
        Step& last = schedule_.steps.back();
        if (last.act == Act::wait && last.milestone == milestone && last.awaited(last.count) == rank) {
            ++last.count;
            return;
        }
    }
    Step step{};
    step.act = Act::wait;
    step.count = 1;
    step.milestone = milestone;
    step.source_owner = rank;
    schedule_.steps.push_back(step);
}

// Makes `copy`, which has one block, part of the last step. Returns: false if it does not go on where that
// step ends.
bool Builder::lengthen(const Step& copy) {
    if (schedule_.steps.empty() || schedule_.steps.back().act != Act::copy) return false;
    Step longer = schedule_.steps.back();
    // A wait for the target comes before the first block of a step only: this copy must not need another one.
    if (longer.after_source != copy.after_source || copy.after_target) return false;
    if (longer.count == 1) longer.along_owners = longer.source_owner != copy.source_owner;
    // If all blocks have one owner, the step waits for that owner once.
    if (longer.after_source && !longer.along_owners) return false;
    if (longer.source(longer.count) != copy.source(0) || longer.target(longer.count) != copy.target(0))
        return false;
    ++longer.count;
    schedule_.steps.back() = longer;
    return true;
}

Builder& Builder::copy(Place source, Place target) {
    COCO_CHECK(source.owner >= 0 && source.index >= 0, "a copy comes from a place inside an area");
    COCO_CHECK(target.owner >= 0 && target.index >= 0, "a copy goes to a place inside an area");
    Step step{};
    step.act = Act::copy;
    step.count = 1;
    step.after_target = fold_arrival(target.owner);  // first: one rank may own both
    step.after_source = fold_arrival(source.owner);
    step.source_area = source.area;
    step.target_area = target.area;
    step.source_owner = source.owner;
    step.source_index = source.index;
    step.target_owner = target.owner;
    step.target_index = target.index;
    write_arrivals();
    if (!lengthen(step)) schedule_.steps.push_back(step);
    return *this;
}

Builder& Builder::append(const Step& step) {
    write_arrivals();
    schedule_.steps.push_back(step);
    return *this;
}

Builder& Builder::raise(Milestone milestone) {
    COCO_CHECK(milestone < kUnread || milestone == kDone, "a schedule raises its own milestones, and kDone");
    COCO_CHECK(std::int64_t{milestone} > raised_, "milestones are raised in increasing order");
    COCO_CHECK(milestone != kDone || under_way_ == 0, "no message is under way at kDone");
    raised_ = milestone;
    Step step{};
    step.act = Act::raise;
    step.milestone = milestone;
    return append(step);
}

Builder& Builder::send(std::int32_t to, Place first, std::int32_t blocks) {
    COCO_CHECK(to >= 0, "a message goes to a rank");
    COCO_CHECK(blocks > 0, "a message has blocks");
    COCO_CHECK(first.index >= 0, "a message begins inside an area");
    Step step{};
    step.act = Act::send;
    step.count = blocks;
    step.source_area = first.area;
    step.source_owner = first.owner;
    step.source_index = first.index;
    step.target_owner = to;
    ++under_way_;
    return append(step);
}

Builder& Builder::receive(std::int32_t from, Place first, std::int32_t blocks) {
    COCO_CHECK(from >= 0, "a message comes from a rank");
    COCO_CHECK(blocks > 0, "a message has blocks");
    COCO_CHECK(first.index >= 0, "a message ends inside an area");
    Step step{};
    step.act = Act::receive;
    step.count = blocks;
    step.source_owner = from;
    step.target_area = first.area;
    step.target_owner = first.owner;
    step.target_index = first.index;
    ++under_way_;
    return append(step);
}

Builder& Builder::complete(std::int32_t left) {
    COCO_CHECK(left >= 0, "no or some messages are left under way");
    if (under_way_ <= left) return *this;
    Step step{};
    step.act = Act::complete;
    step.count = under_way_ = left;
    return append(step);
}

Builder& Builder::wait(std::int32_t rank, Milestone milestone) {
    COCO_CHECK(rank >= 0, "a rank is waited for");
    COCO_CHECK(milestone < kUnread || milestone == kDone, "a schedule waits for what schedules raise");
    if (milestone == kArrived) {
        arrivals_.push_back(rank);
    } else {
        write_arrivals();
        append_wait(rank, milestone);
    }
    return *this;
}

Schedule Builder::take() {
    write_arrivals();
    return std::move(schedule_);
}

}  // namespace coco::schedule
