// SPDX-License-Identifier: BSD-3-Clause
#include "heap/segment_size.h"

#include <algorithm>

#include "base/bits.h"
#include "base/check.h"
#include "os/shared_memory.h"

namespace coco::heap {
namespace {

// Each rank maps the segments of all ranks of its node: a quarter of the 128 TiB that a process has.
constexpr std::uint64_t kNodeBytesMost = std::uint64_t{32} << 40;
constexpr std::uint64_t kAskedBytesMost = std::uint64_t{1} << 46;

std::uint64_t whole_huge_pages(std::uint64_t bytes) { return bytes & ~(os::kHugePageBytes - 1); }

std::uint64_t wanted(const SizeFacts& facts) {
    if (facts.asked_bytes == 0) return facts.memory_bytes / 2;
    return base::round_up(std::min(facts.asked_bytes, kAskedBytesMost), os::kHugePageBytes) + kFirstSpan;
}

}  // namespace

std::uint64_t segment_bytes(const SizeFacts& facts) {
    COCO_CHECK(facts.node_ranks >= 1, "a node has ranks");
    return whole_huge_pages(std::min({wanted(facts), kNodeBytesMost / facts.node_ranks, facts.file_bytes,
                                      bounded_heap_bytes(facts.address_space_bytes, facts.node_ranks)}));
}

std::uint64_t bounded_heap_bytes(std::uint64_t address_space_bytes, std::uint64_t node_ranks) {
    COCO_CHECK(node_ranks >= 1, "a node has ranks");
    if (address_space_bytes == UINT64_MAX) return UINT64_MAX;
    return whole_huge_pages(std::min(address_space_bytes / 4, address_space_bytes / 2 / node_ranks));
}

std::uint64_t mount_share_bytes(std::uint64_t mount_bytes, std::uint64_t free_bytes,
                                std::uint64_t node_ranks) {
    COCO_CHECK(node_ranks >= 1, "a node has ranks");
    return whole_huge_pages(std::min(mount_bytes / 2 / node_ranks, free_bytes / 2));
}

}  // namespace coco::heap
