// SPDX-License-Identifier: BSD-3-Clause
//
// A place says where a block is without an address: (owner rank, area, index). Ranks are ranks of the
// communicator. Areas:
//   send     alltoall: block `index` goes to rank `index`; allgather: the rank's one block, index 0;
//            bcast: on the root only, segment `index`
//   recv     alltoall and allgather: block `index` comes from rank `index`;
//            bcast: on the others, segment `index`
//   scratch  the owner's space on the shared heap for this call; each algorithm decides what an index means
#pragma once
#include <cstdint>

namespace coco::schedule {

enum class Area : std::uint8_t { send, recv, scratch };
inline constexpr int kAreas = 3;

struct Place {
    std::int32_t owner;
    Area area;
    std::int32_t index;
    friend bool operator==(const Place&, const Place&) = default;
};

}  // namespace coco::schedule
