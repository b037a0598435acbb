// SPDX-License-Identifier: BSD-3-Clause
//
// What a rank that combines carries: where the blocks are that it owes its neighbours, its own and those that
// its partners have given it, and the messages that these make. Called by combining, and by aggregate, in
// which the ranks are leaders of nodes. Thread safety: none; belongs to one schedule that is made.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "schedule/combining.h"
#include "schedule/schedule.h"

namespace coco::algorithms {

// Blocks of a rank's scratch, from one on.
class ScratchBlocks {
  public:
    ScratchBlocks(std::int32_t rank, std::int32_t first) : rank_(rank), next_(first) {}
    schedule::Place take(std::int32_t blocks) {
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
    // personal: a load has its number of blocks (alltoall), else the one block of its origin, which is a
    // message's but once. scratch: for what is given and packed.
    Carried(bool personal, schedule::Builder& steps, ScratchBlocks& scratch)
        : personal_(personal), steps_(steps), scratch_(scratch) {}

    // A block for `neighbor` that is there from the start; in the order of the neighbour's.
    void own(std::int32_t neighbor, std::int32_t origin, schedule::Place place);
    // Before anything of these cargoes is sent.
    using Ready = std::function<void(std::span<const schedule::Cargo>)>;
    // Starts to receive what the rank itself gets. Returns: how many messages these are.
    using Receive = std::function<std::int32_t()>;
    // Trades, level by level with one wait for each; then cargo. What arrives, and cargo that needs nothing
    // of the last level, is under way while the rank waits for that.
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
    // Personal: by neighbour, and the iteration in which they were taken over, whatever its level.
    std::map<std::pair<std::int32_t, std::int32_t>, Places> by_neighbor_;
    std::map<std::int32_t, schedule::Place> by_origin_;  // not personal
    // Not personal: where the block is among those of one neighbour.
    std::map<std::pair<std::int32_t, std::int32_t>, schedule::Place> by_both_;
    std::map<std::vector<std::pair<schedule::Area, std::int32_t>>, schedule::Place> packed_;
    Places coming_;  // by trade of a level
};

}  // namespace coco::algorithms
