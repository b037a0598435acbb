// SPDX-License-Identifier: BSD-3-Clause
//
// This process's mappings, in the kernel's own words: for one address (an ioctl of Linux 6.11, 0.5 us), and as a
// list, which every kernel writes (some 0.2 us for each mapping up to the one looked for). Called by the heap. No malloc.
// Thread safety: any thread, with objects of its own; not in signal handlers. Fails: by return value.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

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

// The lines of /proc/self/maps one after the other, by address. What is mapped anew behind the last one that
// was returned is not seen.
class MappingList {
  public:
    MappingList();
    ~MappingList();
    MappingList(const MappingList&) = delete;
    MappingList& operator=(const MappingList&) = delete;
    // Returns: none at the end; unknown if a line cannot be read.
    Told next(Mapping& mapping);

  private:
    bool fill();
    bool skip_rest_of_line();

    int fd_;
    bool is_within_line_ = false;  // the line that was returned last has not been passed
    bool has_failed_ = false;
    std::size_t begin_ = 0, end_ = 0;  // the part of text_ that has not been returned
    char text_[1024];                  // small, as forks and frees run on stacks of any size
};

// The mappings from an address on: the first is the one that covers it, or else the next. Each is asked for, or, where the
// kernel cannot be asked, found in the list.
class MappingsFrom {
  public:
    explicit MappingsFrom(std::uint64_t address) : address_(address) {}
    Told next(Mapping& mapping);

  private:
    std::uint64_t address_;
    std::optional<MappingList> list_;
};

// Whether mappings can be asked for one by one.
bool can_ask_for_mappings();

}  // namespace coco::os
