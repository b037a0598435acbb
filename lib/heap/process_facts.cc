// SPDX-License-Identifier: BSD-3-Clause
#include "heap/process_facts.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <atomic>

#include "base/env.h"
#include "base/kernel.h"
#include "heap/segment_size.h"
#include "os/process.h"

namespace coco::heap {
namespace {

constinit std::atomic<std::uint64_t> g_memory_bytes{UINT64_MAX};  // relaxed: nothing else goes with it

}  // namespace

bool wants_shared_heap() {
    return base::env("COCO_DISABLE") != "1" && heap_limit() != 0u && os::is_mpi_rank() &&
           !os::is_under_valgrind();
}

std::optional<std::uint64_t> heap_limit() {
    std::uint64_t bytes = 0;
    return base::parse_bytes(base::env("COCO_HEAP_LIMIT"), bytes) ? std::optional(bytes) : std::nullopt;
}

std::uint64_t wanted_heap_bytes() {
    const std::optional<std::uint64_t> limit = heap_limit();
    if (limit == 0u) return 0;
    return segment_bytes({.memory_bytes = node_memory_bytes(),
                          .asked_bytes = limit.value_or(0),
                          .node_ranks = os::node_ranks(),
                          .address_space_bytes = limit_of(RLIMIT_AS),
                          .file_bytes = limit_of(RLIMIT_FSIZE)});
}

base::HeapMode mode() {
    constexpr int kUnread = -1;
    static constinit std::atomic<int> found{kUnread};  // relaxed: nothing else goes with it
    int known = found.load(std::memory_order_relaxed);
    if (known == kUnread) {
        base::HeapMode mode = base::HeapMode::adaptive;
        base::parse_heap_mode(base::env("COCO_HEAP"), mode);
        found.store(known = static_cast<int>(mode), std::memory_order_relaxed);
    }
    return static_cast<base::HeapMode>(known);
}

void bound_memory(std::uint64_t node_bytes) { g_memory_bytes.store(node_bytes, std::memory_order_relaxed); }

std::uint64_t node_memory_bytes() {
    static constinit std::atomic<std::uint64_t> known{0};  // relaxed, too
    struct sysinfo facts {};
    if (known.load(std::memory_order_relaxed) == 0 && kernel::sysinfo(&facts) == 0)
        known.store(facts.totalram * facts.mem_unit, std::memory_order_relaxed);
    return known.load(std::memory_order_relaxed);
}

std::uint64_t memory_share_bytes() {
    return std::min(node_memory_bytes(), g_memory_bytes.load(std::memory_order_relaxed)) / os::node_ranks();
}

std::uint64_t limit_of(int resource) {
    rlimit limit{};
    const bool is_known = kernel::getrlimit(resource, &limit) == 0;
    return is_known && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : UINT64_MAX;
}

bool is_address_space_bounded() { return limit_of(RLIMIT_AS) != UINT64_MAX; }

}  // namespace coco::heap
