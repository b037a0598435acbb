// SPDX-License-Identifier: BSD-3-Clause
//
// The plainest exchange among leaders: a message for each ordered pair. In step i a participant sends to the
// participant i places behind it and receives from the one i places before it. Some steps are under way at
// once. All participants go through the steps in the same order, so no two wait for each other.
#include <algorithm>

#include "algorithms/exchange.h"
#include "base/check.h"
#include "base/index.h"

namespace coco::algorithms {
namespace {
// How many steps are under way at once. In a gather they are few, so that what has come is copied while more
// comes: if many messages are under way, all of them come at the end.
constexpr std::int32_t kPersonalWindow = 16, kGatherWindow = 4;
}  // namespace

void exchange_pairwise(const Participants& all, Courier& courier) {
    COCO_CHECK(all.me >= 0 && all.me < all.count(), "who exchanges is a participant");
    COCO_CHECK(all.weight.size() == all.rank.size(), "each participant has a weight");
    COCO_CHECK(!all.personal || all.readers.size() == all.rank.size(),
               "each participant of a personal exchange has readers");
    const std::int32_t window = all.personal ? kPersonalWindow : kGatherWindow;
    for (std::int32_t i = 1; i < all.count(); ++i) {
        std::int32_t to = all.at_distance(all.me, i), from = all.at_distance(all.me, -i);
        courier.receive(from, courier.wanted(from), all.blocks(from, all.me));
        courier.send(to, courier.outgoing(to), all.blocks(all.me, to));
        if (i < window) continue;
        courier.complete(2 * (window - 1));
        std::int32_t oldest = all.at_distance(all.me, -(i - window + 1));
        courier.arrived(oldest, courier.wanted(oldest));
    }
    if (all.count() > 1) courier.complete(0);
    for (std::int32_t i = std::max(1, all.count() - window + 1); i < all.count(); ++i) {
        std::int32_t from = all.at_distance(all.me, -i);
        courier.arrived(from, courier.wanted(from));
    }
}

void exchange_by(Inner inner, const Participants& all, std::int32_t radix, Courier& courier) {
    COCO_CHECK(static_cast<int>(inner) < kInners, "an exchange is one of those that there are");
    using Exchanger = void (*)(const Participants&, std::int32_t radix, Courier&);
    // One for each value of Inner, in their order.
    constexpr Exchanger kExchangers[kInners] = {
        [](const Participants& a, std::int32_t, Courier& c) { exchange_pairwise(a, c); },
        exchange_bruck,
        [](const Participants& a, std::int32_t, Courier& c) { exchange_morton(a, c); },
    };
    kExchangers[base::index(inner)](all, radix, courier);
}

}  // namespace coco::algorithms
