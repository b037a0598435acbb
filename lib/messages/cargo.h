// SPDX-License-Identifier: BSD-3-Clause
//
// How items are put into a cargo and taken out: what the ports of messages/carrier.h in exec have in common.
// Thread safety: that of the channel.
#pragma once
#include "base/check.h"
#include "base/index.h"
#include "blocks/copy_block.h"
#include "messages/carrier.h"
#include "messages/post.h"

namespace coco::messages {

// Writes lengths and data of items behind the opening. item_of(i): block i. Returns: the bytes of data.
template <class ItemOf>
std::uint64_t write_items(const Format& format, std::byte* memory, std::int32_t blocks, ItemOf item_of) {
    std::byte* data = memory + format.head_bytes(blocks);
    for (std::int32_t i = 0; i < blocks; ++i) {
        const Item item = item_of(i);
        format.write_length(memory, i, item);
        const std::uint64_t bytes = item.travelling_bytes();
        if (bytes != 0) blocks::copy_block(data, item.at, bytes);
        data += bytes;
    }
    return base::index(data - memory) - format.head_bytes(blocks);
}

// Calls take(i, item) for each block of what came.
template <class Take>
void read_items(const Format& format, const Cargo& cargo, std::int32_t blocks, Take take) {
    const std::byte* data = cargo.data;
    COCO_CHECK_DEAR(blocks >= 0 && cargo.memory != nullptr, "items are read from what came");
    for (std::int32_t i = 0; i < blocks; ++i) {
        Item item = format.read_length(cargo.memory, i);
        item.at = data;
        data += item.travelling_bytes();
        take(i, item);
    }
}

}  // namespace coco::messages
