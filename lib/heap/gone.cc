// SPDX-License-Identifier: BSD-3-Clause
#include "heap/gone.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>

#include "base/check.h"
#include "base/kept_errno.h"
#include "os/cpu.h"

namespace coco::heap {

constinit std::atomic<bool> g_any_gone{false};
constinit base::Lock g_gone_lock;

namespace {

struct Gone {
    std::uintptr_t begin, end;
};
constexpr std::size_t kMost = 64;

// The noted ranges have the numbers [g_first, g_next). Guarded by g_gone_lock.
constinit Gone g_ranges[kMost] = {};
constinit std::uint64_t g_first = 0, g_next = 0;
// A library that hears an announcement may allocate.
constinit thread_local bool t_announces = false;

Gone& range_of(std::uint64_t number) { return g_ranges[number % kMost]; }

// One range that has all that are noted.
Gone hull() {
    Gone all = range_of(g_first);
    for (std::uint64_t i = g_first + 1; i < g_next; ++i)
        all = {std::min(all.begin, range_of(i).begin), std::max(all.end, range_of(i).end)};
    return all;
}

// Copies what is noted. Returns: the number behind the last one.
std::uint64_t copy_all(Gone* to, std::size_t& count) {
    const std::scoped_lock hold(g_gone_lock);
    count = 0;
    for (std::uint64_t i = g_first; i < g_next; ++i) to[count++] = range_of(i);
    return g_next;
}

// By the name that everybody calls, so that wrappers and patches of it see the call. The kernel refuses an
// address in the midst of a page, so nothing is unmapped.
void announce(const Gone& range) {
    munmap(reinterpret_cast<void*>(range.begin + 1), range.end - range.begin - 1);
}

}  // namespace

void note_gone(const void* address, std::uint64_t bytes) {
    COCO_CHECK_DEAR(bytes != 0 && bytes % os::page_bytes() == 0, "pages that are gone are whole ones");
    COCO_CHECK_DEAR(reinterpret_cast<std::uintptr_t>(address) % os::page_bytes() == 0,
                    "pages that are gone begin as pages do");
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const std::scoped_lock hold(g_gone_lock);
    COCO_CHECK_DEAR(g_first <= g_next && g_next - g_first <= kMost,
                    "the ranges that are noted fit into the list");
    if (g_next - g_first == kMost) {
        const Gone all = hull();
        g_first = g_next;  // as those who announce the old ones just now do not know the new one
        range_of(g_next++) = all;
    }
    range_of(g_next++) = {begin, begin + bytes};
    g_any_gone.store(true, std::memory_order_relaxed);
}

// A range stays noted until it has been announced: another thread that gets its memory meanwhile announces it
// as well, and waits for nobody, as the libraries that hear it have locks of their own.
void announce_all_gone() {
    if (t_announces) return;
    const base::KeptErrno kept;
    t_announces = true;
    Gone ranges[kMost];
    std::size_t count = 0;
    const std::uint64_t next = copy_all(ranges, count);
    for (std::size_t i = 0; i < count; ++i) announce(ranges[i]);
    {
        const std::scoped_lock hold(g_gone_lock);
        g_first = std::max(g_first, next);
        g_any_gone.store(g_first != g_next, std::memory_order_relaxed);
    }
    t_announces = false;
}

}  // namespace coco::heap
