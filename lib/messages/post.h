// SPDX-License-Identifier: BSD-3-Clause
//
// The messages of a channel's calls: the wire by which they go, and memory that calls keep from one to the
// next. Called by exec's flights. Thread safety: that of the channel. Fails: without memory for a message the
// job ends with one line, as other ranks wait.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "blocks/store.h"
#include "channel/channel.h"
#include "messages/carrier.h"
#include "messages/element.h"
#include "mpi/wire.h"

namespace coco::messages {

// One load of blocks as a message of the MPI library's: its memory and its requests.
struct Cargo {
    std::byte* memory = nullptr;  // opening, lengths, and data if that goes along
    std::byte* data = nullptr;    // behind the lengths, or where the second message is
    std::size_t parcel = 0;       // the parcel of a load that is sent
    mpi::Requests head = {}, rest = {};

    mpi::Requests& requests(Part part) { return part == Part::head ? head : rest; }
};

class Post {
  public:
    // Null: no message of this channel's calls travels.
    mpi::Wire* wire = nullptr;
    // Ranks outnumber CPUs, and the MPI library does not give the CPU away while it waits.
    bool yields = false;

    // Waits for all messages that were started on the wire, except for the `left` last ones. Returns: a rank
    // that sent a message with another mark than was expected, or mpi::Wire::kNobody.
    std::int32_t complete(channel::Channel& channel, std::size_t left);
    // Waits for these requests, and forgets them.
    void complete(channel::Channel& channel, mpi::Requests& requests);

    // A memory of a message, which belongs to the call that takes it until that call is over, or until it is
    // released. shared: on the shared heap, if there is room there.
    std::size_t take_parcel(channel::Channel& channel, std::uint64_t bytes, bool shared = false);
    std::byte* memory_of(std::size_t parcel) const {
        COCO_CHECK_DEAR(parcel < parcels_.size() && parcels_[parcel].epoch != 0, "a parcel in use was taken");
        return parcels_[parcel].room.memory;
    }
    void release_parcel(std::size_t parcel) {
        COCO_CHECK_DEAR(parcel < parcels_.size() && parcels_[parcel].epoch != 0,
                        "a parcel that is released was taken");
        parcels_[parcel].epoch = 0;
    }
    // Keeps a parcel that mates read in this epoch until they are done with it.
    void keep_parcel_for_mates(std::size_t parcel) {
        COCO_CHECK_DEAR(parcel < parcels_.size() && parcels_[parcel].epoch != 0,
                        "a parcel that is kept was taken");
        parcels_[parcel].read_by_mates = true;
    }

    // The requests of the call that runs, of messages that it waits for itself.
    mpi::Requests requests;
    // Several nodes: the memory that schedules call scratch, and memory of leaders for messages that mates
    // read. Each has two halves, for calls in turn, since mates may still read the half of the call before.
    static constexpr std::uint64_t kHalves = 2;
    blocks::Room scratch, inbox;
    // Makes a room larger. Mates may still read the old memory: waits until they are done. shared: the memory
    // must be on the shared heap. Returns: false, and changes nothing, if there is no such memory.
    bool grow(channel::Channel& channel, blocks::Room& room, std::uint64_t bytes, bool shared);
    // All ranks have the scratch that the call's schedule wants, which may be none.
    bool has_agreed_on_scratch = false;
    static std::uint64_t half_bytes(const blocks::Room& room) { return room.bytes / kHalves; }
    // The half for this epoch.
    static std::byte* half(const channel::Channel& channel, const blocks::Room& room) {
        return room.memory + channel.epoch() % kHalves * half_bytes(room);
    }
    // Memory that each call fills anew; it grows and never shrinks. Neighbours: blocks of others that this
    // rank carries between two messages, or, in v and w forms, where they are; by receive block, whether it
    // comes straight. v and w forms: the elements received, by receive block; the loads under way.
    std::vector<std::byte> carried;
    std::vector<Item> items;
    std::vector<char> comes_straight;
    std::vector<Element> received;
    Loads<Cargo> loads;

    // Gives up all memory that mates may still read. Returns: that memory, for ControlPool::retire().
    std::vector<void*> leave();

  private:
    struct Parcel {
        blocks::Room room;
        std::uint64_t epoch;         // it is in use through this epoch; 0: it is free
        bool read_by_mates = false;  // in that epoch, and on until they have finished it
    };
    std::size_t use(const channel::Channel& channel, std::size_t parcel) {
        COCO_CHECK_DEAR(channel.epoch() != 0, "a parcel is taken by a call");
        parcels_[parcel].epoch = channel.epoch();
        parcels_[parcel].read_by_mates = false;
        return parcel;
    }
    std::vector<Parcel> parcels_;
};

}  // namespace coco::messages
