// SPDX-License-Identifier: BSD-3-Clause
//
// The table of pages at the own segment's addresses that are no longer as the segment was mapped there,
// because the program has mapped something else over malloc's memory, unmapped it, or shut it by mprotect. It
// has a byte a page, in memory of its own that costs nothing until a page is noted.
//
// Filled by mapping_calls.cc, read by segment.cc, allocator.cc and fork.cc. Thread safety: any thread, and
// signal handlers: no lock. A forked child has a copy. Fails: no.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace coco::heap {

using Changes = std::uint8_t;
constexpr Changes kReplaced = 1;  // something of the program's is mapped there
constexpr Changes kHole = 2;      // was unmapped: what lies there now, if anything, may be anybody's
constexpr Changes kShut = 4;      // the segment's still, but not both readable and writable
constexpr Changes kReadable = 8;  // with kShut: it may be read
constexpr Changes kGone = kReplaced | kHole;
constexpr Changes kAnyChange = kGone | kShut;
// Begins the table for the segment's addresses, before any of them is handed out. Returns: false if there is
// no memory for it.
bool watch_pages(std::byte* base, std::uint64_t bytes);
// Whether [address, address + bytes) has an address of the segment's. A comparison.
bool touches_segment(const void* address, std::size_t bytes);

extern constinit std::atomic<bool> g_changed;
// Whether any page was ever noted, or early blocks are about (early_blocks.h): one relaxed load.
inline bool anything_changed() { return g_changed.load(std::memory_order_relaxed); }
// Whether a page of [address, address + bytes) has one of these changes.
bool is_changed(const void* address, std::size_t bytes, Changes changes);

// Notes a change of all pages of the segment that [address, address + bytes) touches. Returns: whether none
// of them was noted before.
bool note_change(const void* address, std::size_t bytes, Changes change);
void forget_changes(const void* address, std::size_t bytes, Changes changes);
// Opens what the program has shut of a block that it frees. Returns: false where the kernel refuses.
bool open_pages(const void* address, std::size_t bytes);

// Neighbouring pages of the segment with equal changes.
struct PageRun {
    std::byte* begin;
    std::byte* end;
    Changes changes;
};
// The run that starts with the page of `from`, before `end`; begin == end: none.
PageRun run_at(const void* from, const void* end);

}  // namespace coco::heap
