// SPDX-License-Identifier: BSD-3-Clause
#include "heap/kept.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <mutex>

#include "base/bits.h"
#include "base/kernel.h"
#include "base/lock.h"
#include "heap/own_segment.h"
#include "heap/segment.h"
#include "heap/system.h"
#include "os/clock.h"
#include "os/cpu.h"
#include "os/process.h"
#include "os/shared_memory.h"

namespace coco::heap {

// Written under g_lock. Relaxed without it: such readers only want to know whether to take the lock.
constinit std::atomic<std::uint64_t> g_kept_bytes{0};

namespace {

// Pages that are touched anew cost a loop some 0.3 ns a byte more than kept ones: 2 % of a turn of this
// length.
constexpr std::uint64_t kTurn_ns_per_byte = 16;
// Turns that must have been seen before pages are kept.
constexpr int kTurns = 2;

struct Kept {
    std::byte* address;
    std::uint64_t bytes;
    std::uint64_t freed_ns;
    std::uint64_t until_ns;
    std::byte* end() const { return address + bytes; }
};
constexpr int kMostKept = 64;
constinit Kept g_kept[kMostKept] = {};
constinit int g_count = 0;

// A loop that allocates and frees blocks of one size, as far as it was seen.
struct Loop {
    std::uint64_t bytes;
    std::uint64_t freed_ns;
    int turns;
};
constexpr int kMostLoops = 16;
constinit Loop g_loops[kMostLoops] = {};
constinit std::uint64_t g_most = 0;
constinit base::Lock g_lock;

std::uint64_t most_bytes() {
    if (g_most != 0) return g_most;
    struct sysinfo memory {};
    std::uint64_t share =
        kernel::sysinfo(&memory) == 0 ? memory.totalram * memory.mem_unit / os::online_cpus() / 16 : 0;
    g_most = std::clamp<std::uint64_t>(share & ~(os::page_bytes() - 1), os::page_bytes(), 256u << 20);
    return g_most;
}

std::uint64_t turn_ns(std::uint64_t bytes) { return std::min(bytes, most_bytes()) * kTurn_ns_per_byte; }

// The loop of this size, or the one that was seen longest ago, made new for it.
Loop& loop_of(std::uint64_t bytes) {
    Loop* oldest = g_loops;
    for (Loop& loop : g_loops) {
        if (loop.bytes == bytes) return loop;
        if (loop.freed_ns < oldest->freed_ns) oldest = &loop;
    }
    *oldest = {bytes, 0, 0};
    return *oldest;
}

void count_kept(std::uint64_t more, std::uint64_t less) {
    g_kept_bytes.store(g_kept_bytes.load(std::memory_order_relaxed) + more - less, std::memory_order_relaxed);
}

void clear(std::byte* address, std::uint64_t bytes) {
    if (give_up_pages(address, bytes) != 0) std::fill_n(address, bytes, std::byte{0});
}

void add(const Kept& kept) {
    if (kept.bytes == 0) return;
    g_kept[g_count++] = kept;
    count_kept(kept.bytes, 0);
}

Kept remove(int at) {
    Kept kept = g_kept[at];
    g_kept[at] = g_kept[--g_count];
    count_kept(0, kept.bytes);
    return kept;
}

template <class Which>
void drop_if(Which which) {
    for (int i = g_count; i-- > 0;)
        if (which(g_kept[i])) {
            Kept kept = remove(i);
            clear(kept.address, kept.bytes);
        }
}

void drop_before(std::uint64_t now_ns) {
    drop_if([&](const Kept& kept) { return kept.until_ns <= now_ns; });
}

std::uint64_t room() {
    return most_bytes() - std::min(most_bytes(), g_kept_bytes.load(std::memory_order_relaxed));
}

// How much of a freed block may be kept. Where there is no room for all, pages that have not been taken again
// since this loop came round last have to go.
std::uint64_t room_for(const Loop& loop, std::uint64_t bytes) {
    if (loop.turns < kTurns) return 0;
    if (room() < bytes) drop_if([&](const Kept& kept) { return kept.freed_ns < loop.freed_ns; });
    return g_count + 1 < kMostKept ? std::min(bytes, room()) : 0;
}

}  // namespace

bool free_large(std::byte* address, std::uint64_t bytes) {
    std::scoped_lock hold(g_lock);
    std::uint64_t now = os::now_ns();
    drop_before(now);
    Loop& loop = loop_of(bytes);
    std::uint64_t kept = room_for(loop, bytes);
    loop.freed_ns = now;
    if (kept == 0) return give_up_pages(address, bytes) == 0;
    add({address, kept, now, now + turn_ns(bytes)});
    if (kept < bytes) clear(address + kept, bytes - kept);
    return true;
}

void take_large(std::byte* address, std::uint64_t bytes, bool zeroed) {
    std::scoped_lock hold(g_lock);
    std::uint64_t now = os::now_ns();
    Loop& loop = loop_of(bytes);
    loop.turns = now - loop.freed_ns < turn_ns(bytes) ? loop.turns + 1 : 0;
    std::byte* end = address + bytes;
    for (int i = g_count; i-- > 0;) {
        if (g_kept[i].address >= end || g_kept[i].end() <= address) continue;
        Kept kept = remove(i);
        std::byte* from = std::max(kept.address, address);
        std::byte* to = std::min(kept.end(), end);
        if (zeroed) clear(from, static_cast<std::uint64_t>(to - from));
        // The pages before and after stay kept; room_for() left room for one more entry.
        auto before = static_cast<std::uint64_t>(from - kept.address);
        auto after = static_cast<std::uint64_t>(kept.end() - to);
        add({kept.address, before, kept.freed_ns, kept.until_ns});
        if (g_count < kMostKept)
            add({to, after, kept.freed_ns, kept.until_ns});
        else
            clear(to, after);
    }
    drop_before(now);
}

void drop_kept_before(std::uint64_t now_ns) {
    std::scoped_lock hold(g_lock);
    drop_before(now_ns);
}

void drop_old_kept() {
    if (anything_kept()) drop_kept_before(os::now_ns());
}

void lock_kept() {
    g_lock.lock();
    drop_before(kAll);
}
void unlock_kept() { g_lock.unlock(); }

}  // namespace coco::heap
