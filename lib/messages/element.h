// SPDX-License-Identifier: BSD-3-Clause
//
// Where a block is and how long, in the scratch of exchanges whose blocks have sizes of their own. Lies in
// shared memory, is written and read by all ranks of the node.
#pragma once
#include <cstdint>

namespace coco::messages {

struct Element {
    std::uint64_t at;  // offset in the owner's segment
    std::uint64_t bytes;
    std::int32_t owner;
    std::int32_t straight;  // the data is not there: it comes straight from its sender
    std::uint64_t unused;
};
static_assert(sizeof(Element) == 32);

}  // namespace coco::messages
