// SPDX-License-Identifier: BSD-3-Clause
//
// The parts of the own segment that the allocator has: spans, carved from a growing top. The allocator keeps
// what it frees (retain in system.cc). Used by system.cc (the allocator's mmap) and fork.cc. Thread safety:
// any thread, one lock.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/lock.h"
#include "os/cpu.h"

namespace coco::heap {

// Spans begin at multiples of the allocator's pages, which Debian makes as large as those of any kernel of
// the architecture: so jemalloc never has to ask for more than it needs and to cut it.
#if defined(__x86_64__)
constexpr std::uint64_t kAllocatorPageBytes = 4096;
#else
constexpr std::uint64_t kAllocatorPageBytes = 64 << 10;
#endif
inline std::uint64_t span_unit() { return std::max(kAllocatorPageBytes, os::page_bytes()); }

// Takes a span whose address is a multiple of `alignment`; page sizes only. Returns: its offset in the own
// segment, 0 when there is no room.
std::uint64_t take_span(std::uint64_t bytes, std::uint64_t alignment);
// Gives a span back, whose pages must have been given up already. The addresses come again only if none above
// them have been taken.
void give_span(std::uint64_t offset, std::uint64_t bytes);
// End of all that is carved.
std::uint64_t spans_end();

extern constinit base::Lock g_spans_lock;  // fork.cc holds it around a fork

}  // namespace coco::heap
