// SPDX-License-Identifier: BSD-3-Clause
#include "messages/post.h"

#include "base/check.h"
#include "heap/heap.h"
#include "heap/segment.h"
#include "os/clock.h"
#include "os/numa.h"

namespace coco::messages {
namespace {

// Adds the time of a wait up where calls are counted.
class Watch {
  public:
    explicit Watch(channel::Channel& channel)
        : channel_(channel), begin_ns_(channel.timed ? os::now_ns() : 0) {}
    ~Watch() {
        if (channel_.timed) channel_.wait_ns += os::now_ns() - begin_ns_;
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

  private:
    channel::Channel& channel_;
    const std::uint64_t begin_ns_;
};

}  // namespace

std::int32_t Post::complete(channel::Channel& channel, std::size_t left) {
    COCO_CHECK(wire != nullptr, "messages go by a wire");
    Watch watch(channel);
    const std::int32_t unlike = wire->complete(left, yields);
    COCO_CHECK_DEAR(unlike >= mpi::Wire::kNobody, "who sent an unlike message is a rank");
    return unlike;
}

void Post::complete(channel::Channel& channel, mpi::Requests& requests) {
    if (requests.empty()) return;
    Watch watch(channel);
    mpi::Wire::wait(requests, requests.size(), yields);
    requests.clear();
}

std::size_t Post::take_parcel(channel::Channel& channel, std::uint64_t bytes, bool shared) {
    for (std::size_t i = 0; i < parcels_.size(); ++i) {
        const Parcel& parcel = parcels_[i];
        if (parcel.room.bytes < bytes || parcel.epoch >= channel.epoch()) continue;
        if (parcel.read_by_mates) channel.wait_all_done(parcel.epoch);
        // A parcel that was made while the heap was full may lie elsewhere.
        if (!shared || heap::is_shared(parcel.room.memory, bytes)) return use(channel, i);
    }
    std::uint64_t room_bytes = base::round_up(bytes + bytes / 4, heap::kSurelyShared);
    auto* memory = static_cast<std::byte*>(heap::allocate_shared(64, room_bytes));
    if (memory == nullptr) blocks::stop_without_memory(bytes);
    parcels_.push_back({{memory, room_bytes}, 0});
    return use(channel, parcels_.size() - 1);
}

bool Post::grow(channel::Channel& channel, blocks::Room& room, std::uint64_t bytes, bool shared) {
    COCO_CHECK(channel.epoch() != 0, "a room grows in a call");
    if (bytes <= room.bytes) return true;
    auto* memory = static_cast<std::byte*>(heap::allocate_shared(64, bytes));
    if (memory == nullptr || (shared && !heap::is_shared(memory, bytes))) {
        heap::release(memory);
        return false;
    }
    // A leader's mates would touch its memory first. Less than this is not worth another mapping of the
    // kernel's.
    constexpr std::uint64_t kPlacedBytes = 2 << 20;
    if (shared && bytes >= kPlacedBytes) static_cast<void>(os::prefer_here(memory, bytes));
    channel.wait_all_done(channel.epoch() - 1);
    heap::release(room.memory);
    room = {memory, bytes};
    return true;
}

std::vector<void*> Post::leave() {
    COCO_CHECK(requests.empty(), "no message is under way when a channel ends");
    std::vector<void*> memory;
    for (const Parcel& parcel : parcels_) memory.push_back(parcel.room.memory);
    for (blocks::Room* room : {&scratch, &inbox}) {
        if (room->memory != nullptr) memory.push_back(room->memory);
        *room = {};
    }
    parcels_.clear();
    has_agreed_on_scratch = false;
    return memory;
}

}  // namespace coco::messages
