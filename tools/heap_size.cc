// SPDX-License-Identifier: BSD-3-Clause
#include "tools/heap_size.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>

#include "base/env.h"
#include "heap/segment_size.h"
#include "os/process.h"

namespace coco::tools {
namespace {

std::uint64_t limit_of(__rlimit_resource resource) {
    rlimit limit{};
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : UINT64_MAX;
}

}  // namespace

std::uint64_t heap_bytes() {
    std::uint64_t asked = 0;
    const bool is_asked = base::parse_bytes(base::env("COCO_HEAP_LIMIT"), asked);
    struct sysinfo memory {};
    if ((is_asked && asked == 0) || sysinfo(&memory) != 0) return 0;
    return heap::segment_bytes({.memory_bytes = memory.totalram * memory.mem_unit,
                                .asked_bytes = asked,
                                .node_ranks = os::node_ranks(),
                                .address_space_bytes = limit_of(RLIMIT_AS),
                                .file_bytes = limit_of(RLIMIT_FSIZE)});
}

std::uint64_t mount_heap_bytes(std::uint64_t mount_bytes, std::uint64_t free_bytes) {
    return heap::mount_share_bytes(mount_bytes, free_bytes, os::node_ranks());
}

}  // namespace coco::tools
