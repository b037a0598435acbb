// SPDX-License-Identifier: BSD-3-Clause
#include "heap/private_overlays.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/bits.h"
#include "base/check.h"
#include "base/kernel.h"
#include "heap/block_sizes.h"
#include "heap/gone.h"
#include "heap/overlays.h"
#include "os/cpu.h"

namespace coco::heap {
namespace {

// Ranges that are only ever added. The begin of one is stored last (release) and read first (acquire); 0: not
// yet.
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
constinit Ranges<64> g_holes;
constinit std::atomic<bool> g_any_change{false};  // relaxed: whoever frees a block knows what was done to it

bool has_hole(const void* block, std::size_t bytes) { return g_holes.is_full() || g_holes.has(block, bytes); }

// Smaller blocks share pages, which no program changes and lives, with the C library's malloc either.
bool is_renewed(std::size_t bytes) {
    return bytes >= kMiddle && g_any_change.load(std::memory_order_relaxed);
}

}  // namespace

// Addresses that were given back, and come again, are watched already.
void watch_private(const void* begin, std::uint64_t bytes) {
    COCO_CHECK_DEAR(begin != nullptr && bytes != 0, "what is watched has addresses");
    const auto* last = static_cast<const std::byte*>(begin) + bytes - 1;
    if (!g_extents.has(begin, 1) || !g_extents.has(last, 1)) g_extents.add(begin, bytes);
}

void note_private_change(const void* address, std::uint64_t bytes) {
    if (!g_extents.has(address, bytes)) return;
    g_any_change.store(true, std::memory_order_relaxed);
    g_changed.store(true);
}

void note_private_hole(const void* address, std::uint64_t bytes) {
    if (!g_extents.has(address, bytes)) return;
    g_holes.add(address, bytes);
    g_changed.store(true);
}

bool is_private_changed(const void* block, std::size_t bytes) {
    return has_hole(block, bytes) || is_renewed(bytes);
}

bool renew_private(void* block, std::size_t bytes) {
    if (has_hole(block, bytes)) return false;
    if (!is_renewed(bytes)) return true;
    const int saved = errno;
    const bool done = kernel::mmap(block, base::round_up(bytes, os::page_bytes()), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == block;
    note_gone(block, base::round_up(bytes, os::page_bytes()));
    errno = saved;
    return done;
}

}  // namespace coco::heap
