// SPDX-License-Identifier: BSD-3-Clause
//
// Which parts of the own heap core dumps have, by huge pages: those of which the allocator uses something. Whoever reads a
// page of shared memory makes it, debuggers and the kernel's own dumps too, so holes that were read would be filled for
// good. Holes that do not have all of a huge page are read.
//
// Called by system.cc and large.cc, when the allocator begins or ceases to use pages (commits and decommits them). Thread safety: any thread. A forked child's heap is private memory, of which nothing is
// left out. No malloc. Fails: begin_dumps() by return value.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coco::heap {

// Begins with all of the heap left out. Returns: false where there is no memory for the table.
bool begin_dumps(std::byte* base, std::uint64_t bytes);
// The allocator begins to use pages, or ceases to. Page bounds only. What is not the heap's is passed over.
void put_into_dumps(const void* address, std::uint64_t bytes);
void leave_out_of_dumps(const void* address, std::uint64_t bytes);

}  // namespace coco::heap
