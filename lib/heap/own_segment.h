// SPDX-License-Identifier: BSD-3-Clause
//
// What only this room may ask of or do to its own segment.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coco::heap {

// The carvable range, also in a forked child, whose copy of it is private. 0 bytes: never had one.
struct Range {
    std::byte* base;
    std::uint64_t bytes;
};
Range carvable();
// Whether a descriptor still is the segment's (programs close what they did not open).
bool is_own_descriptor(int fd);
// Whether pages must be reserved before they are touched (os::MemoryObject::on_mount).
bool must_reserve_pages();
// Makes a range of the segment read as zeros and gives its pages back. Returns: false with the pages as they
// were.
bool give_up_shared(void* address, std::uint64_t bytes);
// In a forked child: this process has no segment and no peers any more.
void forget_segments();

}  // namespace coco::heap
