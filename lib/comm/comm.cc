// SPDX-License-Identifier: BSD-3-Clause
#include "comm/comm.h"

#include <utility>

#include "base/check.h"
#include "base/index.h"
#include "channel/control_pool.h"
#include "heap/heap.h"

namespace coco::comm {

Comm::~Comm() {
    lane.blocks.release_rooms();
    channel::Channel& channel = lane.channel;
    if (!channel.is_open()) return;
    std::vector<void*> memory = lane.post.leave();
    if (lane.control_is_lone) {
        for (void* kept : memory) heap::release(kept);
        channel::end_lone_control(channel.close());
        return;
    }
    std::vector<channel::Pending> pending = channel.pending();
    channel::control_pool().retire(channel.close(), std::move(pending), std::move(memory));
}

}  // namespace coco::comm
