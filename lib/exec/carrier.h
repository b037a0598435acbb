// SPDX-License-Identifier: BSD-3-Clause
//
// Combined messages of v and w forms: blocks of other ranks, whose lengths travel along. A message is the
// lengths of its blocks and their data; data that is not small follows in a second message, once the receiver
// knows how much it is. Long blocks are only announced: they go straight from their sender to their receiver.
// Called by NeighborView, for one call. Thread safety: that of the communicator.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "comm/comm.h"
#include "schedule/place.h"

namespace coco::exec {

struct Item {
    const std::byte* at = nullptr;
    std::uint64_t bytes = 0;
    bool straight = false;  // it is not there
};

class Carrier {
  public:
    // store: memory of messages, kept from call to call.
    Carrier(comm::Comm& comm, std::vector<std::vector<std::byte>>& store) : comm_(comm), store_(store) {}

    void send(std::int32_t to, std::span<const Item> items);
    // What comes is told to complete()'s `arrived`, first for place `first`.
    void receive(std::int32_t from, schedule::Place first, std::int32_t blocks);
    // Waits for all messages but the last `left`. What came stays where it is until the call is over.
    void complete(std::size_t left, const std::function<void(schedule::Place, const Item&)>& arrived);

  private:
    struct Travel {
        bool sends;
        std::int32_t peer;
        schedule::Place first;
        std::int32_t blocks;
        std::byte* lengths;
        std::byte* data;
        mpi::Requests head = {}, rest = {};
    };
    std::byte* memory_of(std::uint64_t bytes);
    void fetch_rest(Travel& travel);

    comm::Comm& comm_;
    std::vector<std::vector<std::byte>>& store_;
    std::size_t used_ = 0;
    std::vector<Travel> travels_;
};

}  // namespace coco::exec
