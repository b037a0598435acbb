// SPDX-License-Identifier: BSD-3-Clause
//
// The system calls that jemalloc makes, as served from the segment. Called by jemalloc (system.cc) and by the
// hooks of our arenas (arenas.cc). Thread safety: any thread. Fails: as the system's own calls do.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

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

bool is_carvable(const void* address);
// A span of the segment, of which no page is in use; null: there is no room. Page sizes only.
std::byte* carve(std::uint64_t bytes, std::uint64_t alignment);
// Makes a range read as zeros and gives its pages back. Returns: 0, or -1 with the pages as they were.
int give_up_pages(void* address, std::uint64_t bytes);

}  // namespace coco::heap
