// SPDX-License-Identifier: BSD-3-Clause
#include "channel/directory.h"

#include "base/check.h"

namespace coco::channel {

bool Directory::add(std::uint64_t id, const ControlCard& card) {
    COCO_CHECK(id % 2 == 1, "identities are odd");
    COCO_CHECK_DEAR(find(id) == nullptr, "a communicator has one card in a directory");
    for (std::uint64_t step = 0; step < kEntries; ++step) {
        Entry& entry = entries_[place_of(id, step)];
        if (entry.id.load(std::memory_order_relaxed) != 0) continue;
        if (step >= kNear) {
            ++far_entries_;
            // Release pairs with reach(): a rank that looks for the card from now on looks far enough.
            if (step >= reach()) reach_.store(step + 1, std::memory_order_release);
        }
        entry.card = card;
        entry.id.store(id, std::memory_order_release);  // pairs with find()
        sync::raise(changes_.value, changes_.doorbell, changes_.value.load(std::memory_order_relaxed) + 1);
        return true;
    }
    return false;
}

void Directory::remove(std::uint64_t id) {
    for (std::uint64_t step = 0; step < reach(); ++step) {
        Entry& entry = entries_[place_of(id, step)];
        if (entry.id.load(std::memory_order_relaxed) != id) continue;
        entry.id.store(0, std::memory_order_relaxed);
        // Whoever still looks for a card looks for one that is there, and near, or is to come.
        if (step >= kNear && --far_entries_ == 0) reach_.store(0, std::memory_order_release);
        return;
    }
}

const ControlCard* Directory::find(std::uint64_t id) const {
    for (std::uint64_t step = 0; step < reach(); ++step) {
        const Entry& entry = entries_[place_of(id, step)];
        if (entry.id.load(std::memory_order_acquire) == id) return &entry.card;  // pairs with add()
    }
    return nullptr;
}

}  // namespace coco::channel
