// SPDX-License-Identifier: BSD-3-Clause
//
// This process's mappings, in the kernel's own words: for one address (an ioctl of Linux 6.11, 0.5 us),
// and as a list. Called by the heap. No malloc. Thread safety: any thread; not in signal handlers. Fails: by
// return value.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coco::os {

struct Mapping {
    std::uint64_t begin, end;
    std::uint64_t offset;  // the offset of begin in the mapped file
    std::uint64_t inode;   // 0: no file
    std::uint64_t device;  // as stat's st_dev
    int protection;        // PROT_...
    bool shared;
};

enum class Told { mapping, none, unknown };
// The mapping that covers an address. unknown: this kernel cannot tell, or this process may not ask.
Told mapping_at(std::uint64_t address, Mapping& mapping);
// The first mapping that ends behind an address.
Told mapping_from(std::uint64_t address, Mapping& mapping);

// The lines of /proc/self/maps one after the other, by address. What is mapped anew behind the last one that
// was returned is not seen.
// Its buffer is the process's only one, as forks run on stacks of any size. Requires: one list at a time.
class MappingList {
  public:
    MappingList();
    ~MappingList();
    MappingList(const MappingList&) = delete;
    MappingList& operator=(const MappingList&) = delete;
    bool is_open() const { return fd_ >= 0; }
    // Returns: false at the end, or when a line cannot be read.
    bool next(Mapping& mapping);

  private:
    bool fill();

    int fd_;
    std::size_t begin_ = 0, end_ = 0;  // the part of text_ that has not been returned
    static char text_[8192];
};

}  // namespace coco::os
