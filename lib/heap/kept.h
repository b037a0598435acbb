// SPDX-License-Identifier: BSD-3-Clause
//
// Pages of freed large blocks that are kept for a while, because the program was seen to allocate and free
// such blocks in a loop. A page of shared memory costs the kernel 1.7 times a private one when it is first
// touched; a loop that reuses its pages pays neither.
//
// The kept pages are bounded (256 MiB, or a sixteenth of a CPU's share of the memory), and go back: when the
// allocator carves new address space, at fork, and, once the loop has not come round in time, at the next
// call of the allocator's that asks the system for something, or of a collective. A block that is freed once,
// or seldom, goes back at once. An idle process that has looped may keep the bound. Called by large.cc,
// system.cc, fork.cc and the collectives. Thread safety: any thread, one lock. No malloc.
#pragma once
#include <atomic>
#include <cstdint>

namespace coco::heap {

// A large block on the own segment was freed: keeps its pages or gives them back. Returns: false if it can do
// neither; then the pages are as they were.
bool free_large(std::byte* address, std::uint64_t bytes);
// A large block takes these addresses again. zeroed: kept pages must read as zeros.
void take_large(std::byte* address, std::uint64_t bytes, bool zeroed);

extern constinit std::atomic<std::uint64_t> g_kept_bytes;
void drop_kept_before(std::uint64_t now_ns);  // gives back what is to be kept no longer than to now_ns
constexpr std::uint64_t kAll = UINT64_MAX;
// Gives back what has been kept for long enough; a relaxed load when nothing is.
void drop_old_kept();
inline bool anything_kept() { return g_kept_bytes.load(std::memory_order_relaxed) != 0; }

// Around fork: nothing is kept, and no other thread is within these functions.
void lock_kept();
void unlock_kept();

}  // namespace coco::heap
