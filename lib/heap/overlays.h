// SPDX-License-Identifier: BSD-3-Clause
//
// What the program does to pages of malloc's memory: it maps something else over them, unmaps them, or shuts
// them by mprotect.
//
// Of the own segment's addresses a table tells, with a byte a page, in memory of its own that costs nothing
// until a page is noted. Of private blocks (arenas.cc) it is known that some were changed: another mapping in
// their place would get what the next block's owner writes, and pages without access would end it. So each
// middle or large one gets fresh pages from then on when it is freed, as the C library unmaps such blocks. A
// block with a hole, where anybody's mapping may lie by then, is not used again.
//
// Changes are told by mapping_calls.cc, private memory by arenas.cc and system.cc; segment.cc, allocator.cc
// and fork.cc ask. Thread safety: any thread, and signal handlers: no lock. A forked child has a copy. Fails:
// no; private memory beyond 1,024 ranges is not watched, beyond 64 holes all private blocks count as having
// one.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace coco::heap {

using Changes = std::uint8_t;
constexpr Changes kGone = 1;      // was replaced or unmapped: what lies there, if anything, may be anybody's
constexpr Changes kShut = 2;      // the segment's still, but not both readable and writable
constexpr Changes kReadable = 4;  // with kShut: it may be read
constexpr Changes kAnyChange = kGone | kShut;
// Begins the table for the segment's addresses, before any of them is handed out. Returns: false if there is
// no memory for it.
bool watch_pages(std::byte* base, std::uint64_t bytes);
// The allocator has this private memory from now on.
void watch_private(const void* begin, std::uint64_t bytes);
// Whether [address, address + bytes) has an address of the segment's. A comparison.
bool touches_segment(const void* address, std::size_t bytes);

extern constinit std::atomic<bool> g_changed;
// Whether any page was ever noted, or early blocks are about (malloc_family.h): one relaxed load.
inline bool anything_changed() { return g_changed.load(std::memory_order_relaxed); }
// Whether a page of the segment within [address, address + bytes) has one of these changes.
bool is_changed(const void* address, std::size_t bytes, Changes changes);
// Whether a private block may have changed pages.
bool is_private_changed(const void* block, std::size_t bytes);

// Notes what the program does to all pages that [address, address + bytes) touches, as far as they are of the
// segment or of watched memory: it maps something else there. Returns: whether no page of the segment was
// noted before.
bool note_replaced(const void* address, std::size_t bytes);
// The same of the segment alone, before it is unmapped: of watched memory note_hole() tells, afterwards.
bool note_unmapped(const void* address, std::size_t bytes);
// Takes either back, of the segment.
void forget_replaced(const void* address, std::size_t bytes);
// Nothing is mapped any more where the segment or watched memory was.
void note_hole(const void* address, std::size_t bytes);
// protection: as mprotect's. done: whether all pages have it; else some private ones may.
void note_protection(const void* address, std::size_t bytes, int protection, bool done);

// Opens what the program has shut of a segment's block that it frees. Returns: false where the kernel
// refuses.
bool open_pages(const void* block, std::size_t bytes);
// Makes the pages of a private block, whose bytes nobody needs any more, fit for the next one. Returns: false
// where they are not.
bool renew_private(void* block, std::size_t bytes);

// Neighbouring pages of the segment with equal changes.
struct PageRun {
    std::byte* begin;
    std::byte* end;
    Changes changes;
};
// The run that starts with the page of `from`, before `end`; begin == end: none.
PageRun run_at(const void* from, const void* end);

}  // namespace coco::heap
