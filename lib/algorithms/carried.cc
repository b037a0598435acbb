// SPDX-License-Identifier: BSD-3-Clause
#include "algorithms/carried.h"

#include <algorithm>

namespace coco::algorithms {

using schedule::Area;
using schedule::Cargo;
using schedule::Load;
using schedule::Place;
using schedule::Trade;

Place behind(Place place, std::size_t blocks) {
    return {place.owner, place.area, place.index + static_cast<std::int32_t>(blocks)};
}

void Carried::own(std::int32_t neighbor, std::int32_t origin, Place place) {
    if (personal_)
        by_neighbor_[neighbor].push_back(place);
    else {
        by_origin_.emplace(origin, place);
        by_both_.emplace(std::pair(neighbor, origin), place);
    }
}

void Carried::post(const Trade& trade) {
    Places given;
    std::set<std::int32_t> origins;
    for (const Cargo& cargo : trade.given) add(cargo, origins, given);
    std::int32_t count = count_of(trade.taken);
    taken_ = room_.take(count);
    // Of one common neighbour one side has nothing to give.
    if (count != 0) steps_.receive(trade.partner, taken_, count);
    if (!given.empty()) send(trade.partner, given);
}

void Carried::take_over(const Trade& trade) {
    std::set<std::int32_t> fresh;
    for (const Cargo& cargo : trade.taken)
        for (const Load& load : cargo.loads) {
            if (!personal_ && fresh.insert(load.origin).second) by_origin_.emplace(load.origin, next_taken());
            for (std::int32_t i = 0; personal_ && i < load.blocks; ++i)
                by_neighbor_[cargo.rank].push_back(next_taken());
        }
}

void Carried::send(const Cargo& cargo) {
    Places blocks;
    std::set<std::int32_t> origins;
    add(cargo, origins, blocks);
    send(cargo.rank, blocks);
}

Place Carried::next_taken() {
    Place place = taken_;
    taken_ = behind(taken_, 1);
    return place;
}

// The blocks of a message: in an allgather each origin's once.
std::int32_t Carried::count_of(const std::vector<Cargo>& cargoes) const {
    std::set<std::int32_t> origins;
    std::int32_t blocks = 0;
    for (const Cargo& cargo : cargoes) {
        blocks += blocks_in(cargo, true);
        for (const Load& load : cargo.loads) origins.insert(load.origin);
    }
    return personal_ ? blocks : static_cast<std::int32_t>(origins.size());
}

Place Carried::place_of(std::int32_t neighbor, std::int32_t origin) const {
    auto at = by_both_.find({neighbor, origin});
    return at != by_both_.end() ? at->second : by_origin_.at(origin);
}

void Carried::add(const Cargo& cargo, std::set<std::int32_t>& origins, Places& to) const {
    if (personal_) {
        const Places& blocks = by_neighbor_.at(cargo.rank);
        to.insert(to.end(), blocks.begin(), blocks.end());
        return;
    }
    for (const Load& load : cargo.loads)
        if (origins.insert(load.origin).second) to.push_back(place_of(cargo.rank, load.origin));
}

void Carried::send(std::int32_t to, const Places& blocks) {
    steps_.send(to, together(blocks), static_cast<std::int32_t>(blocks.size()));
}

// Where they lie behind one another in scratch; packed if they do not.
Place Carried::together(const Places& blocks) {
    auto is_next = [&](const Place& place) {
        return place.area == Area::scratch &&
               place == behind(blocks[0], static_cast<std::size_t>(&place - blocks.data()));
    };
    if (blocks.size() == 1 || std::ranges::all_of(blocks, is_next)) return blocks[0];
    std::vector<std::pair<Area, std::int32_t>> key;
    for (const Place& place : blocks) key.emplace_back(place.area, place.index);
    auto [packed, made] = packed_.try_emplace(key);
    if (!made) return packed->second;
    packed->second = room_.take(static_cast<std::int32_t>(blocks.size()));
    for (std::size_t i = 0; i < blocks.size(); ++i) steps_.copy(blocks[i], behind(packed->second, i));
    return packed->second;
}

}  // namespace coco::algorithms
