// SPDX-License-Identifier: BSD-3-Clause
//
// A lock for what runs below malloc: like std::mutex, but no name that other preloaded libraries wrap is
// called for it. For std::scoped_lock. Thread safety: any thread; not in signal handlers. A lock that is held
// at a fork is held in the child, too. Not recursive. Fails: no.
#pragma once
#include <atomic>
#include <cstdint>

namespace coco::base {

class Lock {
  public:
    void lock() {
        if (try_lock()) [[likely]]
            return;
        // Whoever has waited takes the lock as an awaited one, as others may wait still.
        while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree) sleep();
    }
    bool try_lock() {
        std::uint32_t free = kFree;
        return state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire,
                                              std::memory_order_relaxed);
    }
    void unlock() {
        if (state_.exchange(kFree, std::memory_order_release) == kAwaited) [[unlikely]]
            wake_one();
    }

  private:
    enum : std::uint32_t { kFree, kHeld, kAwaited };

    void sleep();  // while it is awaited
    void wake_one();

    std::atomic<std::uint32_t> state_{kFree};
};

}  // namespace coco::base
