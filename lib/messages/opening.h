// SPDX-License-Identifier: BSD-3-Clause
//
// The messages of exchanges of all ranks over several nodes: what opens one, and their form. Used by
// exec/nodes_sized.cc and by its model in bench/simulate. Knows no MPI.
#pragma once
#include "messages/format.h"

namespace coco::messages {

// An announcement, which all ranks have to hear. It stands behind the elements of a rank's scratch, and opens
// each message.
struct Announcement {
    std::uint64_t refused = 0;  // some rank cannot take part
    std::uint64_t largest_bytes = 0;

    void hear(const Announcement& other) {
        refused |= other.refused;
        largest_bytes = std::max(largest_bytes, other.largest_bytes);
    }
};

// The opening of a message.
struct Opening {
    Announcement announced;
    std::uint32_t blocks;
    std::uint32_t signature;
};

// The format of such messages. Lengths have 32 bits in personal exchanges, which send many of them, otherwise
// 64.
inline Format opened_format(bool personal, std::int32_t ranks) {
    if (!personal) return {.opening_bytes = sizeof(Opening)};
    return {.opening_bytes = sizeof(Opening), .length_bytes = 4, .straight_bytes = straight_bytes(ranks)};
}

}  // namespace coco::messages
