// SPDX-License-Identifier: BSD-3-Clause
//
// The blocks that a combining rank carries: the places of all that it owes its neighbours, its own blocks and
// those that its partners have given it, and the messages that are made of them. Called by combining. Thread
// safety: none; it belongs to the making of one schedule.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "schedule/combining.h"
#include "schedule/schedule.h"

namespace coco::algorithms {

// Gives out the blocks of a rank's scratch one after the other, beginning with block `first`.
class ScratchBlocks {
  public:
    ScratchBlocks(std::int32_t rank, std::int32_t first) : rank_(rank), next_(first) {
        COCO_CHECK(rank >= 0 && first >= 0, "the scratch of a rank begins with block 0 or behind it");
    }
    schedule::Place take(std::int32_t blocks) {
        COCO_CHECK(blocks >= 0, "blocks of scratch are given out, not taken back");
        next_ += blocks;
        return {rank_, schedule::Area::scratch, next_ - blocks};
    }
    std::int32_t end() const { return next_; }

  private:
    std::int32_t rank_, next_;
};

schedule::Place behind(schedule::Place place, std::size_t blocks);

class Carried {
  public:
    // personal: a load stands for its number of blocks (alltoall); else for the one block of its origin
    // (allgather), which a message has only once. scratch: for blocks that are taken over or packed.
    Carried(bool personal, schedule::Builder& steps, ScratchBlocks& scratch)
        : personal_(personal), steps_(steps), scratch_(scratch) {}

    // Names a block of `origin` for `neighbor` that this rank has from the start. To be called for the blocks
    // of a neighbour in their order.
    void own(std::int32_t neighbor, std::int32_t origin, schedule::Place place);
    // Called before anything of these cargoes is sent.
    using Ready = std::function<void(std::span<const schedule::Cargo>)>;
    // Starts to receive what is for the rank itself. Returns: the number of these messages.
    using Receive = std::function<std::int32_t()>;
    // Adds the steps for all trades, level by level with one wait for each level, and then for all cargo.
    // With the last level the rank also starts to receive what arrives, and sends the cargo that needs
    // nothing of that level.
    void carry(const schedule::CombinedSends& all, const Ready& ready, const Receive& receive);

  private:
    using Trades = std::span<const schedule::Trade>;
    void post(Trades level, const Ready& ready);
    void take_over(Trades level);
    void take_over(const schedule::Trade& trade, schedule::Place at);
    void send(const schedule::Cargo& cargo);
    using Places = std::vector<schedule::Place>;

    std::int32_t count_of(const std::vector<schedule::Cargo>& cargoes) const;
    schedule::Place place_of(std::int32_t neighbor, std::int32_t origin) const;
    void add(const schedule::Cargo& cargo, std::set<std::int32_t>& origins, Places& to) const;
    void send(std::int32_t to, const Places& blocks);
    schedule::Place together(const Places& blocks);

    const bool personal_;
    schedule::Builder& steps_;
    ScratchBlocks& scratch_;
    // If personal: by neighbour, and by the iteration in which the blocks were taken over.
    std::map<std::pair<std::int32_t, std::int32_t>, Places> by_neighbor_;
    // If not personal: where the block of an origin is; and where it is among the blocks for one neighbour,
    // if that is another place.
    std::map<std::int32_t, schedule::Place> by_origin_;
    std::map<std::pair<std::int32_t, std::int32_t>, schedule::Place> by_both_;
    std::map<std::vector<std::pair<schedule::Area, std::int32_t>>, schedule::Place> packed_;
    Places coming_;  // by trade of the level under way: where what is taken over will lie
};

}  // namespace coco::algorithms
