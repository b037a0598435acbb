// SPDX-License-Identifier: BSD-3-Clause
//
// Memory objects without a name that other processes can map, and what the kernel does with ranges of them.
// Called by the heap. No malloc. Thread safety: any thread. Fails: by return value, errno says why.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coco::os {

struct MemoryObject {
    int fd = -1;            // O_CLOEXEC; -1: could not be made
    bool on_mount = false;  // lives on /dev/shm, whose size limits it: reserve_pages before touching
};

enum class Via { memfd, shm_open };
// A sparse object of `bytes`, gone when its last user is.
MemoryObject make_memory_object(std::uint64_t bytes, Via via = Via::memfd);
// Whether madvise does what it says. Emulators of another processor (qemu-user) say yes to all of it and do
// nothing, and memory that is given back would keep its bytes. Found out once, which takes some 20 us.
bool advice_is_heeded();
// Gives the pages of a range back to the system; the range reads as zeros afterwards. By address it fails
// where advice is not heeded.
bool punch_hole(void* address, std::uint64_t bytes);
bool punch_hole(int fd, std::uint64_t offset, std::uint64_t bytes);
// Takes the pages of a range now, so that touching them later cannot raise SIGBUS.
bool reserve_pages(int fd, std::uint64_t offset, std::uint64_t bytes);
// Takes and maps the pages of a range now, as far as this kernel can (Linux 5.14): touching them later is no
// page fault.
void populate(void* address, std::uint64_t bytes);
// The written ranges of an object, for questions in the order of offsets. The kernel finds a range's end by a
// walk over all of its pages, so each range is looked up once, however many questions fall into it.
class Written {
  public:
    struct Range {
        std::uint64_t begin, end;
    };
    explicit Written(int fd) : fd_(fd) {}
    // The first written range at or after `from`, cut to what is below `limit`; begin == end: there is none.
    // A range that the system cannot tell about counts as written.
    Range next(std::uint64_t from, std::uint64_t limit);
    int fd() const { return fd_; }

  private:
    void look_up(std::uint64_t from);

    int fd_;
    // Nothing is written in [asked_, found_.begin). Of [0, 0) nothing is known.
    std::uint64_t asked_ = 0;
    Range found_{0, 0};
};
// Whether huge pages can be made of shared memory that is mapped there (Linux 6.1), and the system allows
// them: its administrator has not set transparent_hugepage/enabled to never, nor shmem_enabled to deny, nor
// this process or its parents PR_SET_THP_DISABLE. Requires: address is that of a whole huge page.
bool can_collapse(void* address);
// Makes each part of the size of a huge page one, in the NUMA domain of this thread: pages that are not there
// are zeros. Whatever the kernel refuses stays as small pages. Some 0.2 ms each. Requires: whole huge pages.
void make_huge(void* begin, std::uint64_t bytes);
// Asks for huge pages of private memory that is about to be filled, where there are enough.
void ask_for_huge_pages(void* begin, std::uint64_t bytes);

// Moves a descriptor out of the way of programs that count on low numbers. Returns: its new number; as it was
// where there is no other.
int move_up(int fd);

constexpr std::uint64_t kHugePageBytes = 2u << 20;

}  // namespace coco::os
