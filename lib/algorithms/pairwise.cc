// SPDX-License-Identifier: BSD-3-Clause
//
// The plainest exchange among leaders: a message for each ordered pair. In step i a participant sends to the
// one i places behind it and receives from the one i places before it; kWindow steps are under way at once,
// and all go through the steps in the same order, so that no two wait for each other.
#include <algorithm>

#include "algorithms/exchange.h"

namespace coco::algorithms {
namespace {
constexpr std::int32_t kWindow = 16;
}

void exchange_pairwise(const Participants& all, Courier& courier) {
    for (std::int32_t i = 1; i < all.count(); ++i) {
        std::int32_t to = all.at_distance(all.me, i), from = all.at_distance(all.me, -i);
        courier.receive(from, courier.wanted(from), all.blocks(from, all.me));
        courier.send(to, courier.outgoing(to), all.blocks(all.me, to));
        if (i < kWindow) continue;
        courier.complete(2 * (kWindow - 1));
        std::int32_t oldest = all.at_distance(all.me, -(i - kWindow + 1));
        courier.arrived(oldest, courier.wanted(oldest));
    }
    if (all.count() > 1) courier.complete(0);
    for (std::int32_t i = std::max(1, all.count() - kWindow + 1); i < all.count(); ++i) {
        std::int32_t from = all.at_distance(all.me, -i);
        courier.arrived(from, courier.wanted(from));
    }
}

void exchange_by(Inner inner, const Participants& all, std::int32_t radix, Courier& courier) {
    using Exchanger = void (*)(const Participants&, std::int32_t radix, Courier&);
    // In the order of Inner.
    constexpr Exchanger kExchangers[kInners] = {
        [](const Participants& a, std::int32_t, Courier& c) { exchange_pairwise(a, c); },
        exchange_bruck,
        [](const Participants& a, std::int32_t, Courier& c) { exchange_morton(a, c); },
    };
    kExchangers[static_cast<int>(inner)](all, radix, courier);
}

}  // namespace coco::algorithms
