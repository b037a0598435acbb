// SPDX-License-Identifier: BSD-3-Clause
#include "blocks/store.h"

#include <cstdlib>

#include "base/log.h"
#include "heap/heap.h"
#include "heap/segment.h"

namespace coco::blocks {

void Store::release_rooms() {
    for (Room* room : {&shared_send, &shared_recv, &private_send, &private_recv}) {
        heap::release(room->memory);
        *room = {};
    }
}

std::byte* fetch(Room& room, std::uint64_t bytes) {
    if (room.bytes < bytes) {
        heap::release(room.memory);
        room.memory = static_cast<std::byte*>(heap::allocate_shared(64, bytes));
        room.bytes = room.memory != nullptr ? bytes : 0;
    }
    return room.memory;
}

std::byte* fetch_shared(Room& room, std::uint64_t bytes) {
    std::byte* memory = fetch(room, bytes);
    return memory != nullptr && heap::is_shared(memory, bytes) ? memory : nullptr;
}

// Ending the process is the only way: the other ranks are in the call, and do not check for a refusal here.
void stop_without_memory(std::uint64_t bytes) {
    base::log_last(base::Text() << "out of memory: " << bytes << " bytes to pack a datatype");
    std::abort();
}

}  // namespace coco::blocks
