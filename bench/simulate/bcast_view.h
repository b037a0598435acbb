// SPDX-License-Identifier: BSD-3-Clause
//
// A train of a bcast's segments on one simulated rank, as lib/exec/nodes_bcast.cc sends them: what a leader
// shows its mates is a ring of copies or, for long buffers, the buffer itself. All buffers count as being on
// the shared heap, so a ring is for buffers below kAliasBytesMin and its trains fit the stage beside one
// another: nobody waits for its readers between them. Not modelled: the tape and its records.
#pragma once
#include "view.h"

namespace simulate {

// As in lib/exec/nodes_bcast.cc and lib/exec/exchange.h.
inline constexpr std::int64_t kSegmentBytes = 16 * 1024, kSegmentBytesMax = 64 * 1024;
inline constexpr std::int64_t kAliasBytesMin = 128 * 1024;
inline constexpr std::int64_t kTrain = 64;

struct Train {
    std::int64_t number, at, bytes, unit_bytes;  // segments have unit_bytes; the last one may be shorter
    bool alias;
};

class BcastView : public QueueView {
  public:
    BcastView(World& world, int self, const Train& train, const coco::schedule::Schedule& schedule)
        : QueueView(world, self), train_(train), publishes_(schedule.scratch_blocks != 0) {}

    void copy(Place from, Place to) {
        bool fills = to.area == coco::schedule::Area::scratch;
        if (fills && train_.alias) return;
        Place whole = fills ? from : to;
        std::int64_t bytes = bytes_of(whole.index, 1);
        charge_copy(bytes);
        if (!world_.moves) return;
        const std::byte* source = train_.alias ? buffer(from.owner) + offset(whole.index) : at(from);
        std::memcpy(at(to), source, static_cast<std::size_t>(bytes));
    }
    void wait(std::int32_t peer, coco::schedule::Milestone milestone) {
        if (!(publishes_ && train_.alias)) ClockedView::wait(peer, of_train(milestone));
    }
    void raise(coco::schedule::Milestone milestone) { ClockedView::raise(of_train(milestone)); }
    void send(std::int32_t to, Place first, std::int32_t blocks) {
        start_send(to, at(first), bytes_of(first.index, blocks), 0, requests_.emplace_back());
    }
    void receive(std::int32_t from, Place first, std::int32_t blocks) {
        start_receive(from, at(first), bytes_of(first.index, blocks), 0, requests_.emplace_back());
    }
    // A rank that shows its own buffer returns when all have read it.
    void wait_for_readers() {
        if (!publishes_) return;
        for (std::int32_t mate = 0; mate < world_.ranks; ++mate)
            if (mate != self_ && world_.map.node[mate] == world_.map.node[self_])
                ClockedView::wait(mate, of_train(coco::schedule::kDone));
    }

  private:
    // Milestones go on growing from train to train.
    coco::schedule::Milestone of_train(coco::schedule::Milestone milestone) const {
        return static_cast<coco::schedule::Milestone>(train_.number) * (coco::schedule::kDone + 1) +
               milestone;
    }
    std::int64_t offset(std::int32_t segment) const { return segment * train_.unit_bytes; }
    std::int64_t bytes_of(std::int32_t segment, std::int32_t blocks) const {
        return std::min(blocks * train_.unit_bytes, train_.bytes - offset(segment));
    }
    // The place of this train in a rank's buffer.
    std::byte* buffer(std::int32_t owner) {
        if (!world_.moves) return world_.any.data();
        using coco::schedule::Area;
        return rank(owner).areas.at(owner == 0 ? Area::send : Area::recv) + train_.at;
    }
    std::byte* at(Place place) {
        if (!world_.moves) return world_.any.data();
        if (place.area != coco::schedule::Area::scratch) return buffer(place.owner) + offset(place.index);
        return rank(place.owner).areas.at(place.area) + offset(place.index);
    }

    const Train& train_;
    const bool publishes_;
};

}  // namespace simulate
