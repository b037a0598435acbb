// SPDX-License-Identifier: BSD-3-Clause
#include "heap/private_overlays.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "heap/overlays.h"

namespace coco::heap {
namespace {

// Ranges that are only ever added. A slot is filled before it is counted (release), and read after (acquire).
template <std::uint32_t kMost>
class Ranges {
  public:
    void add(const void* begin, std::uint64_t bytes) {
        const std::uint32_t slot = taken_.fetch_add(1, std::memory_order_relaxed);
        if (slot >= kMost) return;
        const auto from = reinterpret_cast<std::uint64_t>(begin);
        ends_[slot].store(from + bytes, std::memory_order_relaxed);
        begins_[slot].store(from, std::memory_order_release);  // pairs with has()
    }
    bool is_full() const { return taken_.load(std::memory_order_relaxed) > kMost; }
    bool has(const void* address, std::uint64_t bytes) const {
        const std::uint32_t taken = std::min(taken_.load(std::memory_order_relaxed), kMost);
        const auto from = reinterpret_cast<std::uint64_t>(address);
        for (std::uint32_t i = 0; i < taken; ++i) {
            const std::uint64_t begin = begins_[i].load(std::memory_order_acquire);
            if (begin < from + bytes && from < ends_[i].load(std::memory_order_relaxed) && begin != 0)
                return true;
        }
        return false;
    }

  private:
    std::atomic<std::uint32_t> taken_{0};
    std::atomic<std::uint64_t> begins_[kMost] = {}, ends_[kMost] = {};
};

constinit Ranges<1024> g_extents;
constinit Ranges<64> g_noted;

}  // namespace

// Addresses that were given back, and come again, are watched already.
void watch_private(const void* begin, std::uint64_t bytes) {
    const auto* last = static_cast<const std::byte*>(begin) + bytes - 1;
    if (!g_extents.has(begin, 1) || !g_extents.has(last, 1)) g_extents.add(begin, bytes);
}

void note_private(const void* address, std::uint64_t bytes) {
    if (!g_extents.has(address, bytes)) return;
    g_noted.add(address, bytes);
    g_changed.store(true);
}

bool is_private_noted(const void* address, std::uint64_t bytes) {
    return g_noted.is_full() || g_noted.has(address, bytes);
}

}  // namespace coco::heap
