// SPDX-License-Identifier: BSD-3-Clause
//
// How large a segment may be, as arithmetic. Called by this room when the segment is made, and by the
// command. Thread safety: any thread. Fails: no; 0 where there is room for none.
#pragma once
#include <cstdint>

namespace coco::heap {

// First byte that may be carved; below it is the segment's header.
constexpr std::uint64_t kFirstSpan = 2u << 20;
constexpr std::uint64_t kLeastSegmentBytes = 2 * kFirstSpan;

struct SizeFacts {
    std::uint64_t memory_bytes;                      // the memory of the node
    std::uint64_t asked_bytes = 0;                   // COCO_HEAP_LIMIT; 0: not set
    std::uint64_t node_ranks = 1;                    // ranks of the job on this node, at least 1
    std::uint64_t address_space_bytes = UINT64_MAX;  // RLIMIT_AS
    std::uint64_t file_bytes = UINT64_MAX;           // RLIMIT_FSIZE: the kernel counts a memfd as a file
};
// Address space for a segment's heap, in whole huge pages.
std::uint64_t segment_bytes(const SizeFacts& facts);
// How far a heap may grow under a limit on the address space (UINT64_MAX: none): those of all ranks of the
// node together take half of it at most, and a rank's own a quarter.
std::uint64_t bounded_heap_bytes(std::uint64_t address_space_bytes, std::uint64_t node_ranks);

// A rank's share of a mount that limits shared memory, of which the MPI library needs some too.
std::uint64_t mount_share_bytes(std::uint64_t mount_bytes, std::uint64_t free_bytes,
                                std::uint64_t node_ranks);

}  // namespace coco::heap
