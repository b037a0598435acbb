// SPDX-License-Identifier: BSD-3-Clause
//
// A segment as it is mapped in a process. A segment is as large as its owner may ever need it, and the limits
// on an address space (RLIMIT_AS) count what is mapped: so an owner maps of each of its areas as much as it
// has reached, and peers as much as the owner has. A view lies where all of the segment has room, so that an
// address in it is its base and an offset for good, whatever is mapped later.
//
// Called by segment.cc. Thread safety: one thread at a time changes a view. No malloc. Fails: by
// return value, errno says why, with everything as it was.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coco::heap {

enum Area { kHeap, kRoom, kAreas };

// Where the areas begin, as offsets, and behind the last one the end. An area may be empty.
struct Areas {
    std::uint64_t begin[kAreas + 1];

    std::uint64_t bytes() const { return begin[kAreas]; }
    std::uint64_t bytes_of(Area area) const { return begin[area + 1] - begin[area]; }
    Area area_of(std::uint64_t offset) const { return offset < begin[kRoom] ? kHeap : kRoom; }
};

// Addresses where nothing can be touched yet. Returns: null where there are none. Called by arenas.cc, too.
std::byte* reserve(std::uint64_t bytes, std::uint64_t alignment);

class View {
  public:
    // What a forked child and a core dump have of it. Core dumps leave all views out; the own one is put in
    // where it is used (parts.h).
    enum class In { others, owner };

    // Finds a place and maps the first 2 MiB of each area. fd: the segment's.
    bool open(int fd, const Areas& areas, In in);
    // Maps an area up to `end`, an offset. fd: the segment's, or -1, where what is mapped is stretched.
    bool extend(Area area, std::uint64_t end, int fd = -1);
    void close();

    std::byte* base() const { return base_; }
    const Areas& areas() const { return areas_; }
    // The offset up to which an area is mapped.
    std::uint64_t mapped_to(Area area) const { return mapped_to_[area]; }

  private:
    bool map(Area area, std::uint64_t end, int fd);

    std::byte* base_ = nullptr;
    Areas areas_{};
    In in_ = In::others;
    std::uint64_t mapped_to_[kAreas] = {};
};

}  // namespace coco::heap
