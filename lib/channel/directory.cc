// SPDX-License-Identifier: BSD-3-Clause
#include "channel/directory.h"

#include "base/check.h"

namespace coco::channel {

bool Directory::add(std::uint64_t id, const ControlCard& card) {
    COCO_CHECK(id % 2 == 1, "identities are odd");
    COCO_CHECK_DEAR(find(id) == nullptr, "a communicator has one card in a directory");
    for (std::uint64_t step = 0; step < kPlaces; ++step) {
        Entry& entry = entries_[place_of(id, step)];
        // Relaxed, as all the owner's own loads: only the owner writes here, under a lock.
        if (entry.id.load(std::memory_order_relaxed) != 0) continue;
        if (step >= kNear) {
            ++far_entries_;
            // Pairs with reach(): a rank that looks for the card from now on looks far enough. One that has
            // looked less far sees this behind the rise of the changes below.
            if (step >= reach()) reach_.store(step + 1, std::memory_order_release);
        }
        entry.card = card;
        // Release: pairs with find(), which hands the card on to be read. Nobody reads the card that was
        // here: its readers have left, and been waited for, before it was removed.
        entry.id.store(id, std::memory_order_release);
        // The raise releases: it pairs with the loads of the changes in Channel::find_peer(), which finds the
        // card behind that.
        sync::raise(changes_.value, changes_.doorbell, changes_.value.load(std::memory_order_relaxed) + 1);
        return true;
    }
    return false;
}

void Directory::remove(std::uint64_t id) {
    COCO_CHECK(id % 2 == 1, "identities are odd");
    for (std::uint64_t step = 0; step < reach(); ++step) {
        Entry& entry = entries_[place_of(id, step)];
        if (entry.id.load(std::memory_order_relaxed) != id) continue;
        // Relaxed: it publishes nothing. A rank that reads the old identity for long looks for another one,
        // and passes.
        entry.id.store(0, std::memory_order_relaxed);
        COCO_CHECK(step < kNear || far_entries_ != 0, "an entry that is far was counted as such");
        // Release: pairs with reach(). Any rank that looks for a card now looks for one that is near, or to
        // come.
        if (step >= kNear && --far_entries_ == 0) reach_.store(0, std::memory_order_release);
        return;
    }
}

const ControlCard* Directory::find(std::uint64_t id) const {
    COCO_CHECK_DEAR(id % 2 == 1, "identities are odd");
    for (std::uint64_t step = 0; step < reach(); ++step) {
        const Entry& entry = entries_[place_of(id, step)];
        // Acquire: pairs with the store in add(). The caller reads the card next.
        if (entry.id.load(std::memory_order_acquire) == id) return &entry.card;
    }
    return nullptr;
}

}  // namespace coco::channel
