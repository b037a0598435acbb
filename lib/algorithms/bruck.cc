// SPDX-License-Identifier: BSD-3-Clause
//
// Source:     Bruck, Ho, Kipnis, Upfal, Weathersby 1997. The paper rotates the blocks before and behind the
//             rounds. Here a table says where each bundle lies: what is received stays where it came until
//             it is sent on or copied to its end.
// Idea:       The distance of a bundle to its receiver is written in base r. In the round of digit k the
//             bundles whose digit is d go d r^k places on, together. In an allgather each rank sends on all
//             that it has collected, which multiplies that by r in each round.
// Needs:      nothing: any ranks, any nodes
// Steps:      per rank a message for each d r^k < P with 0 < d < r, up to (r - 1) ceil(log_r P); those of a
//             round go at once. Allgather: two for one where it reaches round the last rank
// Bytes:      alltoall per rank each block once for each digit of its distance that is not 0, about P (r -
//             1) / r ceil(log_r P) blocks sent, and copied to be sent; P copied at the end; allgather P - 1
//             sent, 1 copied
// Scratch:    alltoall about P (r - 1) / r (ceil(log_r P) + r - 1) blocks; allgather none
// Good for:   small blocks and many ranks, where messages cost more than bytes
#include <algorithm>

#include "algorithms/exchange.h"
#include "base/check.h"
#include "base/index.h"

namespace coco::algorithms {
namespace {

using schedule::Place;

// The largest number of messages under way in a round.
constexpr std::int32_t kWindow = 32;

class Personal {
  public:
    Personal(const Participants& all, std::int32_t radix, Courier& courier)
        : all_(all), radix_(radix), courier_(courier), at_(base::index(all.count())) {
        for (std::int32_t j = 1; j < all.count(); ++j) at_[j] = courier.outgoing(all.at_distance(all.me, j));
    }

    void run() {
        for (std::int64_t w = 1; w < all_.count(); w *= radix_) round(base::number(w));
    }

  private:
    void round(std::int32_t w) {
        w_ = w;
        std::vector<Place> next = at_;
        std::int32_t messages = 0;
        for (std::int32_t digit = 1; digit < radix_ && std::int64_t{digit} * w < all_.count(); ++digit) {
            exchange(digit, next);
            if (++messages >= kWindow) courier_.complete(2 * (kWindow - 1));
        }
        courier_.complete(0);
        at_ = next;
        for (std::int32_t j = w; j < std::min<std::int64_t>(all_.count(), std::int64_t{w} * radix_); ++j)
            courier_.arrived(all_.at_distance(all_.me, -j), at_[j]);
    }

    // Sends on, in one message, the bundles whose distance has `digit` in this round, and receives as many
    // others.
    void exchange(std::int32_t digit, std::vector<Place>& next) {
        std::vector<std::int32_t> distances;
        for (std::int32_t j = digit * w_; j < all_.count(); ++j)
            if (j / w_ % radix_ == digit) distances.push_back(j);
        std::int32_t to = all_.at_distance(all_.me, digit * w_),
                     from = all_.at_distance(all_.me, -digit * w_);
        std::int32_t in = 0;
        for (std::int32_t j : distances) in += blocks_of(from, j);
        Place place = courier_.new_scratch(in);
        courier_.receive(from, place, in);
        for (std::int32_t j : distances) {
            next[j] = place;
            place = behind(place, blocks_of(from, j));
        }
        send(to, distances);
    }

    void send(std::int32_t to, const std::vector<std::int32_t>& distances) {
        std::int32_t out = 0;
        for (std::int32_t j : distances) out += blocks_of(all_.me, j);
        if (distances.size() == 1) return courier_.send(to, at_[distances[0]], out);
        Place packed = courier_.new_scratch(out), end = packed;
        for (std::int32_t j : distances) {
            courier_.copy(at_[j], end, blocks_of(all_.me, j));
            end = behind(end, blocks_of(all_.me, j));
        }
        courier_.send(to, packed, out);
    }

    // The blocks of the bundle with distance j that `holder` has before this round. It has gone the way of
    // the lower digits already, so its sender is that far before the holder.
    std::int32_t blocks_of(std::int32_t holder, std::int32_t j) const {
        std::int32_t sender = all_.at_distance(holder, -(j % w_));
        return all_.blocks(sender, all_.at_distance(sender, j));
    }

    const Participants& all_;
    const std::int32_t radix_;
    Courier& courier_;
    std::vector<Place> at_;  // by distance from the first sender to the receiver: where that bundle is now
    std::int32_t w_ = 1;
};

class Gather {
  public:
    Gather(const Participants& all, std::int32_t radix, Courier& courier)
        : all_(all), radix_(radix), courier_(courier) {}

    void run() {
        for (std::int64_t have = 1; have < all_.count(); have *= radix_) round(base::number(have));
    }

  private:
    // The participant has the bundles of `have` participants from itself on, and receives the next ones.
    void round(std::int32_t have) {
        std::int32_t end = have, messages = 0;
        for (std::int32_t digit = 1; digit < radix_ && std::int64_t{digit} * have < all_.count(); ++digit) {
            std::int32_t distance = digit * have, count = std::min(have, all_.count() - distance);
            std::int32_t from = all_.at_distance(all_.me, distance);
            in_pieces(from, count,
                      [&](Place at, std::int32_t blocks) { courier_.receive(from, at, blocks); });
            std::int32_t to = all_.at_distance(all_.me, -distance);
            in_pieces(all_.me, count, [&](Place at, std::int32_t blocks) { courier_.send(to, at, blocks); });
            end = distance + count;
            if (++messages >= kWindow) courier_.complete(2 * (kWindow - 1));
        }
        courier_.complete(0);
        for (std::int32_t d = have; d < end; ++d) {
            std::int32_t from = all_.at_distance(all_.me, d);
            courier_.arrived(from, courier_.wanted(from));
        }
    }

    // Calls `use` for the bundles of `count` participants from `first` on, going round: once, or twice if the
    // areas begin with participant 0 and the bundles reach round.
    template <class Use>
    void in_pieces(std::int32_t first, std::int32_t count, Use use) {
        std::int32_t before_wrap = courier_.is_ring() ? count : std::min(count, all_.count() - first);
        for (auto [begin, part] : {std::pair{first, before_wrap}, std::pair{0, count - before_wrap}}) {
            if (part == 0) continue;
            std::int32_t blocks = 0;
            for (std::int32_t d = 0; d < part; ++d) blocks += all_.blocks(all_.at_distance(begin, d), 0);
            use(courier_.wanted(begin), blocks);
        }
    }

    const Participants& all_;
    const std::int32_t radix_;
    Courier& courier_;
};

}  // namespace

void exchange_bruck(const Participants& all, std::int32_t radix, Courier& courier) {
    COCO_CHECK(radix >= 2, "digits have a base of two or more");
    COCO_CHECK(all.me >= 0 && all.me < all.count(), "who exchanges is a participant");
    COCO_CHECK(all.weight.size() == all.rank.size(), "each participant has a weight");
    COCO_CHECK(!all.personal || all.readers.size() == all.rank.size(),
               "each participant of a personal exchange has readers");
    if (all.personal)
        Personal(all, radix, courier).run();
    else
        Gather(all, radix, courier).run();
}

schedule::Schedule make_bruck(const Shape& shape) { return make_flat(shape, Inner::bruck); }

}  // namespace coco::algorithms
