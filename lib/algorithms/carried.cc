// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms/carried.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/index.h"

namespace coco::algorithms {

using schedule::Area;
using schedule::Cargo;
using schedule::CombinedSends;
using schedule::Load;
using schedule::Place;
using schedule::Trade;

namespace {

constexpr std::int32_t kBeforeTrades = -1;  // iteration

// The number of trades that have the same level as the first one.
std::size_t first_level(std::span<const Trade> trades) {
    auto end = std::ranges::find_if(trades, [&](const Trade& t) { return t.level != trades[0].level; });
    return base::index(end - trades.begin());
}

}  // namespace

Place behind(Place place, std::size_t blocks) {
    return {place.owner, place.area, place.index + base::number(blocks)};
}

void Carried::own(std::int32_t neighbor, std::int32_t origin, Place place) {
    COCO_CHECK(neighbor >= 0 && place.index >= 0, "what a rank owes has a receiver and lies inside an area");
    if (personal_)
        by_neighbor_[{neighbor, kBeforeTrades}].push_back(place);
    else {
        by_origin_.emplace(origin, place);
        by_both_.emplace(std::pair(neighbor, origin), place);
    }
}

void Carried::carry(const CombinedSends& all, const Ready& ready, const Receive& receive) {
    COCO_CHECK_DEAR(std::ranges::is_sorted(all.trades, {}, &Trade::level), "trades are sorted by level");
    COCO_CHECK_DEAR(std::ranges::is_sorted(all.cargoes, {}, &Cargo::level), "cargoes are sorted by level");
    auto cargo = all.cargoes.begin();
    auto send_below = [&](std::int32_t level) {
        std::int32_t sent = 0;
        for (; cargo != all.cargoes.end() && cargo->level < level; ++cargo, ++sent) {
            ready({&*cargo, 1});
            send(*cargo);
        }
        return sent;
    };
    for (Trades left = all.trades; !left.empty();) {
        const Trades level = left.first(first_level(left));
        left = left.subspan(level.size());
        post(level, ready);
        std::int32_t meanwhile = 0;
        if (left.empty()) {
            meanwhile = receive();
            meanwhile += send_below(level[0].level);
        }
        steps_.complete(meanwhile);
        take_over(level);
    }
    if (all.trades.empty()) receive();
    send_below(std::numeric_limits<std::int32_t>::max());
}

void Carried::post(Trades level, const Ready& ready) {
    coming_.clear();
    for (const Trade& trade : level) {
        std::int32_t count = count_of(trade.taken);
        coming_.push_back(scratch_.take(count));
        // If there is only one common neighbour, one of the two partners has nothing to give.
        if (count != 0) steps_.receive(trade.partner, coming_.back(), count);
    }
    for (const Trade& trade : level) {
        ready(trade.given);
        Places given;
        std::set<std::int32_t> origins;
        for (const Cargo& cargo : trade.given) add(cargo, origins, given);
        if (!given.empty()) send(trade.partner, given);
    }
}

void Carried::take_over(Trades level) {
    COCO_CHECK(coming_.size() == level.size(), "each trade of a level has a place for what it brings");
    for (std::size_t i = 0; i < level.size(); ++i) take_over(level[i], coming_[i]);
}

void Carried::take_over(const Trade& trade, Place at) {
    auto next = [&at] { return std::exchange(at, behind(at, 1)); };
    std::set<std::int32_t> fresh;
    for (const Cargo& cargo : trade.taken)
        for (const Load& load : cargo.loads) {
            if (!personal_ && fresh.insert(load.origin).second) by_origin_.emplace(load.origin, next());
            for (std::int32_t i = 0; personal_ && i < load.blocks; ++i)
                by_neighbor_[{cargo.rank, trade.iteration}].push_back(next());
        }
}

void Carried::send(const Cargo& cargo) {
    Places blocks;
    std::set<std::int32_t> origins;
    add(cargo, origins, blocks);
    send(cargo.rank, blocks);
}

// The number of blocks in a message: in an allgather the block of an origin counts once.
std::int32_t Carried::count_of(const std::vector<Cargo>& cargoes) const {
    std::set<std::int32_t> origins;
    std::int32_t blocks = 0;
    for (const Cargo& cargo : cargoes) {
        blocks += blocks_in(cargo, true);
        for (const Load& load : cargo.loads) origins.insert(load.origin);
    }
    return personal_ ? blocks : base::number(origins.size());
}

Place Carried::place_of(std::int32_t neighbor, std::int32_t origin) const {
    auto at = by_both_.find({neighbor, origin});
    return at != by_both_.end() ? at->second : by_origin_.at(origin);
}

void Carried::add(const Cargo& cargo, std::set<std::int32_t>& origins, Places& to) const {
    if (personal_) {
        const std::size_t before = to.size();
        for (auto at = by_neighbor_.lower_bound({cargo.rank, kBeforeTrades});
             at != by_neighbor_.end() && at->first.first == cargo.rank; ++at)
            to.insert(to.end(), at->second.begin(), at->second.end());
        COCO_CHECK(std::ssize(to) - static_cast<std::ptrdiff_t>(before) == blocks_in(cargo, true),
                   "a rank has the blocks that it owes a neighbour by the pattern");
        return;
    }
    for (const Load& load : cargo.loads)
        if (origins.insert(load.origin).second) to.push_back(place_of(cargo.rank, load.origin));
}

void Carried::send(std::int32_t to, const Places& blocks) {
    steps_.send(to, together(blocks), base::number(blocks.size()));
}

// A place where these blocks lie one after the other: their own, if they do so in scratch; else they are
// packed.
Place Carried::together(const Places& blocks) {
    COCO_CHECK(!blocks.empty(), "a message has blocks");
    auto is_next = [&](const Place& place) {
        return place.area == Area::scratch && place == behind(blocks[0], base::index(&place - blocks.data()));
    };
    if (blocks.size() == 1 || std::ranges::all_of(blocks, is_next)) return blocks[0];
    std::vector<std::pair<Area, std::int32_t>> key;
    for (const Place& place : blocks) key.emplace_back(place.area, place.index);
    auto [packed, made] = packed_.try_emplace(key);
    if (!made) return packed->second;
    packed->second = scratch_.take(base::number(blocks.size()));
    for (std::size_t i = 0; i < blocks.size(); ++i) steps_.copy(blocks[i], behind(packed->second, i));
    return packed->second;
}

}  // namespace coco::algorithms
