// SPDX-License-Identifier: BSD-3-Clause
//
// Questions about the own segment and changes to it that only this room may use.
#pragma once
#include <cstddef>
#include <cstdint>

#include "heap/view.h"
#include "os/own_mappings.h"

namespace coco::heap {

// The carvable range, also in a forked child, whose copy of it is private. 0 bytes: there never was one.
struct Range {
    std::byte* base;
    std::uint64_t bytes;
};
Range carvable();
// The part of the segment whose pages stand for adopted memory outside it (outside.h); 0 bytes: it has none.
Range annex();
const Areas& own_areas();
// Sees to it that an area is mapped up to `end`, an offset. Returns: false where limits, or the system, refuse it.
bool reach_own(Area area, std::uint64_t end);
// Whether a mapping is of the segment, each page in its place; also in a forked child that has not replaced it
// yet.
bool is_own_mapping(const os::Mapping& mapping);
// Whether a mapping is of the segment, wherever it is.
bool is_of_segment(const os::Mapping& mapping);
// Whether a descriptor still is the segment's (programs close what they did not open).
bool is_own_descriptor(int fd);
// Whether pages must be reserved before they are touched (os::MemoryObject::on_mount).
bool must_reserve_pages();
// Makes a range of the segment read as zeros and gives its pages back. Returns: false with the pages as they
// were, as where something else is mapped there.
bool punch_shared(void* address, std::uint64_t bytes);
// The same for memory that is the allocator's: anything else that is mapped there, as the kernel says, has to go
// first, as its own pages would be given up instead, of a file, perhaps.
bool give_up_shared(void* address, std::uint64_t bytes);
// Maps the segment's pages there again, in a forked child private memory. fixed: MAP_FIXED, or
// MAP_FIXED_NOREPLACE. Returns: false where something else is there, or the segment's descriptor is lost.
bool map_again(void* address, std::uint64_t bytes, int fixed);
// In a forked child: unmaps what is mapped of the segment from an offset on.
void unmap_own_from(std::uint64_t offset);
// In a forked child: this process has no segment and no peers any more.
void forget_segments();

}  // namespace coco::heap
