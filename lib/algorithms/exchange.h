// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges by messages, from which bruck, multinode_morton and the leader schemes are made. A participant is
// a rank that sends for `weight` ranks (for itself alone, or for the ranks of its node or of a team there)
// and hands what it receives to `readers` ranks. In a personal exchange participant a owes each other
// participant b a bundle of weight(a) x readers(b) blocks. In a gather it owes all others the same bundle of
// weight(a) blocks. A bundle lies in one piece in an area of its participant. An exchange function says what
// happens, and a Courier turns that into steps. The mates of a leader call the same function with a courier
// that sends nothing: so they know when bundles come. Called while schedules are made. Thread safety: pure
// functions.
#pragma once
#include <cstdint>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/check.h"
#include "base/index.h"

namespace coco::algorithms {

struct Participants {
    std::vector<std::int32_t> rank, weight, readers;  // by participant
    std::int32_t me = 0;
    bool personal = true;

    std::int32_t count() const { return base::number(rank.size()); }
    // The participant `distance` places behind `from` (before it, if negative), modulo count().
    std::int32_t at_distance(std::int32_t from, std::int32_t distance) const {
        COCO_CHECK_DEAR(from >= 0 && from < count(), "a distance begins at a participant");
        return (from + distance % count() + count()) % count();
    }
    // The number of blocks in the bundle from one participant to another.
    std::int32_t blocks(std::int32_t from, std::int32_t to) const {
        COCO_CHECK_DEAR(from >= 0 && from < count(), "a bundle comes from a participant");
        COCO_CHECK_DEAR(!personal || (to >= 0 && to < count()), "a bundle goes to a participant");
        std::int32_t own = weight[base::index(from)];
        return personal ? own * readers[base::index(to)] : own;
    }
};

// The meaning of an exchange's steps for one participant. All places are in areas of that participant.
class Courier {
  public:
    virtual ~Courier() = default;
    // Where the participant's bundle for `to` lies; in a gather, where its only bundle lies.
    virtual schedule::Place outgoing(std::int32_t to) = 0;
    // Where the bundle from `from` should end, if it can be received right there.
    virtual schedule::Place wanted(std::int32_t from) = 0;
    // In a gather: true if the wanted places lie one after the other beginning with this participant's and
    // going round; false if they begin with participant 0's.
    virtual bool is_ring() const = 0;
    // Scratch for this number of blocks, which was not given before.
    virtual schedule::Place new_scratch(std::int32_t blocks) = 0;
    virtual void copy(schedule::Place source, schedule::Place target, std::int32_t blocks) = 0;
    virtual void send(std::int32_t to, schedule::Place first, std::int32_t blocks) = 0;
    virtual void receive(std::int32_t from, schedule::Place first, std::int32_t blocks) = 0;
    virtual void complete(std::int32_t left) = 0;
    // Says that the bundle from `from` lies at `at` and stays there. Called once for every other participant.
    virtual void arrived(std::int32_t from, schedule::Place at) = 0;
};

inline schedule::Place behind(schedule::Place place, std::int32_t blocks) {
    return {place.owner, place.area, place.index + blocks};
}

// Runs the exchange that `inner` names, personal or gather as `all` says. radix: for bruck.
void exchange_by(Inner inner, const Participants& all, std::int32_t radix, Courier& courier);

// A message for each pair of participants, some at a time: pairwise.cc.
void exchange_pairwise(const Participants& all, Courier& courier);
// See the cards in bruck.cc and multinode_morton.cc.
void exchange_bruck(const Participants& all, std::int32_t radix, Courier& courier);
void exchange_morton(const Participants& all, Courier& courier);

// The schedule of an exchange in which every rank is a participant of weight 1: flat.cc.
schedule::Schedule make_flat(const Shape& shape, Inner inner);

}  // namespace coco::algorithms
