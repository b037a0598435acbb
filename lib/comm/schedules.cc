// SPDX-License-Identifier: BSD-3-Clause
#include "comm/schedules.h"

#include "base/check.h"

namespace coco::comm {
namespace {

std::unique_ptr<schedule::Schedule> make(const ScheduleKey& key, const Schedules::Seat& seat) {
    COCO_CHECK(key.algorithm != nullptr, "a schedule is that of an algorithm");
    COCO_CHECK(seat.rank >= 0 && seat.rank < seat.map.ranks(),
               "a schedule is for a rank that knows where all ranks are");
    COCO_CHECK(key.root >= 0 && key.root < seat.map.ranks(), "a root is one of the ranks");
    COCO_CHECK(key.segments >= 1, "a buffer has a segment or more");
    COCO_CHECK(key.parameters.radix >= 2, "a radix is two or more");
    COCO_CHECK((key.neighborhood == nullptr) == (key.share == nullptr),
               "neighbours and their share go together");
    algorithms::Shape shape{.exchange = key.exchange,
                            .rank = seat.rank,
                            .map = &seat.map,
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

constexpr std::size_t kBcasts = 128;

// The hash keeps apart the keys that programs use in turn: consecutive roots, a full train and the short one
// at the end, and the algorithms of a small and of a large bcast.
std::size_t bcast_place(const ScheduleKey& key) {
    constexpr std::uint32_t kApart = 37, kAlgorithmsApart = 11;
    return (static_cast<std::uint32_t>(key.root) + kApart * static_cast<std::uint32_t>(key.segments) +
            kAlgorithmsApart * key.algorithm->mark()) %
           kBcasts;
}

}  // namespace

Schedules::Kept& Schedules::of_exchange(const ScheduleKey& key, const Seat& seat) {
    COCO_CHECK(key.exchange != algorithms::Exchange::bcast, "schedules of bcasts are kept apart");
    COCO_CHECK_DEAR(key.algorithm != nullptr, "a schedule is that of an algorithm");
    if (last_ < all_.size() && all_[last_].key == key) return all_[last_];
    for (last_ = 0; last_ < all_.size(); ++last_)
        if (all_[last_].key == key) return all_[last_];
    all_.push_back({key, make(key, seat)});
    return all_.back();
}

std::shared_ptr<const schedule::Schedule> Schedules::of_bcast(const ScheduleKey& key, const Seat& seat) {
    COCO_CHECK_DEAR(key.exchange == algorithms::Exchange::bcast, "schedules of exchanges are kept apart");
    if (bcasts_.empty()) bcasts_.resize(kBcasts);
    KeptBcast& kept = bcasts_[bcast_place(key)];
    if (kept.schedule == nullptr || !(kept.key == key)) kept = {key, make(key, seat)};
    return kept.schedule;
}

void Schedules::forget_neighbors() {
    std::erase_if(all_, [](const Kept& kept) { return kept.key.neighborhood != nullptr; });
    last_ = 0;
}

void Schedules::forget_fits() {
    for (Kept& kept : all_) kept.fits.clear();
}

}  // namespace coco::comm
