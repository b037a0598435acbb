// SPDX-License-Identifier: BSD-3-Clause
#include "comm/comm.h"

#include <utility>

#include "base/check.h"
#include "base/index.h"
#include "channel/control_pool.h"
#include "heap/heap.h"

namespace coco::comm {

Comm::Kept& Comm::kept_schedule(const ScheduleKey& key) {
    COCO_CHECK(key.exchange != algorithms::Exchange::bcast, "schedules of bcasts are kept apart");
    COCO_CHECK_DEAR(key.algorithm != nullptr, "a schedule is that of an algorithm");
    if (last_schedule < schedules.size() && schedules[last_schedule].key == key)
        return schedules[last_schedule];
    for (last_schedule = 0; last_schedule < schedules.size(); ++last_schedule)
        if (schedules[last_schedule].key == key) return schedules[last_schedule];
    schedules.push_back({key, make_schedule(key)});
    return schedules.back();
}

namespace {

// The hash keeps apart the keys that programs use in turn: consecutive roots, a full train and the short one
// at the end, and the algorithms of a small and of a large bcast.
std::size_t bcast_place(const ScheduleKey& key) {
    constexpr std::uint32_t kApart = 37, kAlgorithmsApart = 11;
    return (static_cast<std::uint32_t>(key.root) + kApart * static_cast<std::uint32_t>(key.segments) +
            kAlgorithmsApart * key.algorithm->mark()) %
           Comm::kBcastSchedules;
}

}  // namespace

std::shared_ptr<const schedule::Schedule> Comm::bcast_schedule_for(const ScheduleKey& key) {
    COCO_CHECK_DEAR(key.exchange == algorithms::Exchange::bcast, "schedules of exchanges are kept apart");
    if (bcast_schedules.empty()) bcast_schedules.resize(kBcastSchedules);
    KeptBcast& kept = bcast_schedules[bcast_place(key)];
    if (kept.schedule == nullptr || !(kept.key == key)) kept = {key, make_schedule(key)};
    return kept.schedule;
}

std::unique_ptr<schedule::Schedule> Comm::make_schedule(const ScheduleKey& key) const {
    COCO_CHECK(key.algorithm != nullptr, "a schedule is that of an algorithm");
    COCO_CHECK(rank >= 0 && rank < ranks && map.ranks() == ranks,
               "a schedule is for a rank that knows where all ranks are");
    COCO_CHECK(key.root >= 0 && key.root < ranks, "a root is one of the ranks");
    COCO_CHECK(key.segments >= 1, "a buffer has a segment or more");
    COCO_CHECK(key.parameters.radix >= 2, "a radix is two or more");
    COCO_CHECK((key.neighborhood == nullptr) == (key.share == nullptr),
               "neighbours and their share go together");
    algorithms::Shape shape{.exchange = key.exchange,
                            .rank = rank,
                            .map = &map,
                            .root = key.root,
                            .segments = key.segments,
                            .parameters = key.parameters,
                            .neighborhood = key.neighborhood,
                            .share = key.share,
                            .bundles = key.bundles,
                            .combined_sends = key.combined_sends,
                            .combined_receives = key.combined_receives};
    return std::make_unique<schedule::Schedule>(key.algorithm->make_schedule(shape));
}

Comm::~Comm() {
    lane.blocks.release_rooms();
    channel::Channel& channel = lane.channel;
    if (!channel.is_open()) return;
    std::vector<void*> memory = lane.post.leave();
    if (control_is_lone) {
        for (void* kept : memory) heap::release(kept);
        channel::end_lone_control(channel.close());
        return;
    }
    std::vector<channel::Pending> pending = channel.pending();
    channel::retire_control(channel.close(), std::move(pending), std::move(memory));
}

}  // namespace coco::comm
