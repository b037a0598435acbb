// SPDX-License-Identifier: BSD-3-Clause
//
// Where a rank's node-mates find its control block for a communicator: a table in the rank's shared memory,
// by the communicator's identity (comm/bond.h). Only the owner writes it, in its process under a lock; any
// process of the node reads it. An entry is there from the owner's first call on the communicator until every
// rank has left it, so a rank that has found it and has not left yet may rely on it.
//
// A directory is as good as new where its memory is zeros.
//
// Thread safety: add() and remove() by any thread of the owner, under one lock of the caller's; find() by
// anybody. Fails: a full table says so.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "channel/sizes.h"
#include "os/cpu.h"
#include "sync/flag.h"

namespace coco::channel {

// How a mate uses a control block.
struct ControlCard {
    std::uint64_t control_at;      // offset in the owner's segment
    std::uint64_t epoch_base;      // the block's epochs run ahead of the communicator's by this
    std::uint64_t tape_at;         // where the next record of its tape will be
    std::uint64_t leavers_before;  // Control::leavers when the communicator took the block
};

class Directory {
  public:
    static constexpr std::uint64_t kEntries = kDirectoryEntries;
    static constexpr std::uint64_t kFirstBytes =
        (kFirstEntries + 2) * os::kLineBytes;  // from the beginning; most programs need no more

    // Shows the card of communicator `id`. Returns: false if the table is full. Requires: id is not 0 and not
    // there.
    bool add(std::uint64_t id, const ControlCard& card);
    void remove(std::uint64_t id);
    // The card of communicator `id`; null if it is not there.
    const ControlCard* find(std::uint64_t id) const;
    // Raised after each card that is added: a rank that has not found one looks again when the flag has
    // risen.
    sync::Flag& changes() { return changes_; }

  private:
    struct alignas(os::kLineBytes) Entry {
        std::atomic<std::uint64_t> id{0};  // 0: free
        ControlCard card{};
    };
    // An entry's places, in order of preference: kNear of the first entries, then all others. Entries lie
    // within kNear, or, once there was no room, within reach_.
    static constexpr std::uint64_t kNear = kNearEntries, kPlaces = kNear + kEntries - kFirstEntries;
    static std::uint64_t place_of(std::uint64_t id, std::uint64_t step) {
        id >>= 1;  // identities are odd
        return step < kNear ? (id + step) % kFirstEntries
                            : kFirstEntries + (id + step - kNear) % (kEntries - kFirstEntries);
    }
    // Acquire: pairs with the stores in add() and remove().
    std::uint64_t reach() const { return std::max(kNear, reach_.load(std::memory_order_acquire)); }

    sync::Flag changes_;
    std::atomic<std::uint64_t> reach_{0};  // all entries lie within so many places; 0: within kNear
    std::uint64_t far_entries_ = 0;        // entries beyond kNear; only the owner counts them
    Entry entries_[kEntries];
};

}  // namespace coco::channel
