// SPDX-License-Identifier: BSD-3-Clause
#include "comm/passed.h"

#include <unistd.h>

#include "base/check.h"
#include "base/index.h"
#include "mpi/library.h"
#include "os/descriptors.h"

namespace coco::comm {
namespace {

constexpr std::uint64_t kPatience_ns = 10'000'000'000u;

void exchange_with(os::DescriptorDoor& door, const std::vector<heap::SegmentId>& mates) {
    std::vector<std::uint64_t> cookies;
    for (const heap::SegmentId& mate : mates) cookies.push_back(mate.cookie);
    std::vector<int> fds(mates.size());
    os::exchange_descriptors(door, heap::own_descriptor(), cookies, fds, kPatience_ns);
    for (std::size_t i = 0; i < mates.size(); ++i) {
        if (fds[i] < 0) continue;
        heap::map_peer(mates[i], fds[i]);
        ::close(fds[i]);
    }
}

}  // namespace

void map_passed(const Comm& comm, const std::vector<heap::SegmentId>& segments) {
    COCO_CHECK(segments.size() == base::index(comm.ranks), "each rank has shown its segment");
    std::uint64_t cookie = heap::own_id().cookie;
    os::DescriptorDoor door(cookie);
    // Nobody sends before all doors are open.
    std::uint64_t able = cookie != 0 && door.is_open() && heap::own_descriptor() >= 0;
    std::vector<std::uint64_t> all_able(segments.size());
    mpi::lib().Allgather(&able, 1, mpi::lib().int64, all_able.data(), 1, mpi::lib().int64, comm.handle);
    if (!able) return;
    std::vector<heap::SegmentId> mates;
    for (std::int32_t mate : comm.mates)
        if (all_able[base::index(mate)] != 0) mates.push_back(segments[base::index(mate)]);
    exchange_with(door, mates);
}

}  // namespace coco::comm
