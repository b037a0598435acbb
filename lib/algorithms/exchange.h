// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges by messages, which bruck, multinode_morton and the leader schemes are made of. A participant is a
// rank that speaks for `weight` ranks, for itself alone or for those of its node or of a team there, and
// hands what it is sent to `readers` ranks: in a personal exchange participant a owes each other b a bundle
// of weight(a) x readers(b) blocks; in a gather it owes all others the same bundle of weight(a) blocks. A
// bundle lies in one piece in an area of its participant. The exchange says what happens, a Courier what it
// means; so the mates of a leader follow its exchange without a message. Called while schedules are made.
// Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <vector>

#include "algorithms/algorithm.h"

namespace coco::algorithms {

struct Participants {
    std::vector<std::int32_t> rank, weight, readers;  // by participant
    std::int32_t me = 0;
    bool personal = true;

    std::int32_t count() const { return static_cast<std::int32_t>(rank.size()); }
    // Participant `distance` places behind (or before, if negative) `from`, round.
    std::int32_t at_distance(std::int32_t from, std::int32_t distance) const {
        return (from + distance % count() + count()) % count();
    }
    // Blocks of the bundle from one participant to another.
    std::int32_t blocks(std::int32_t from, std::int32_t to) const {
        std::int32_t own = weight[static_cast<std::size_t>(from)];
        return personal ? own * readers[static_cast<std::size_t>(to)] : own;
    }
};

// Places are in areas of the participant whose exchange it is.
class Courier {
  public:
    virtual ~Courier() = default;
    // Where its bundle for `to` lies; in a gather, its only one.
    virtual schedule::Place outgoing(std::int32_t to) = 0;
    // Where the bundle from `from` should end, if it can be received there.
    virtual schedule::Place wanted(std::int32_t from) = 0;
    // Gather: whether the wanted places of the participants from this one on, round, lie behind one another;
    // else those from participant 0 on do.
    virtual bool is_ring() const = 0;
    // Scratch for so many blocks.
    virtual schedule::Place new_scratch(std::int32_t blocks) = 0;
    virtual void copy(schedule::Place source, schedule::Place target, std::int32_t blocks) = 0;
    virtual void send(std::int32_t to, schedule::Place first, std::int32_t blocks) = 0;
    virtual void receive(std::int32_t from, schedule::Place first, std::int32_t blocks) = 0;
    virtual void complete(std::int32_t left) = 0;
    // The bundle from `from` lies at `at` and stays there. Told for every other participant once.
    virtual void arrived(std::int32_t from, schedule::Place at) = 0;
};

inline schedule::Place behind(schedule::Place place, std::int32_t blocks) {
    return {place.owner, place.area, place.index + blocks};
}

// One of them by name, personal or gather as `all` says. radix: Bruck's.
void exchange_by(Inner inner, const Participants& all, std::int32_t radix, Courier& courier);

// pairwise.cc: a message for each pair, some at a time.
void exchange_pairwise(const Participants& all, Courier& courier);
// bruck.cc and multinode_morton.cc; see their cards.
void exchange_bruck(const Participants& all, std::int32_t radix, Courier& courier);
void exchange_morton(const Participants& all, Courier& courier);

// The schedule of an exchange in which every rank is a participant of weight 1. flat.cc
schedule::Schedule make_flat(const Shape& shape, Inner inner);

}  // namespace coco::algorithms
