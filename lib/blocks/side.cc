// SPDX-License-Identifier: BSD-3-Clause
#include "blocks/side.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/index.h"
#include "blocks/copy_block.h"
#include "heap/segment.h"

namespace coco::blocks {
namespace {

std::uint64_t bytes_of_block(const Buffer& buffer, std::int32_t block, std::uint64_t block_bytes) {
    COCO_CHECK_DEAR(block >= 0 && block < buffer.block_count, "a block is one of the blocks of its buffer");
    return buffer.blocks.empty() ? block_bytes : buffer.blocks[block].bytes;
}

std::byte* user_block(const Buffer& buffer, std::int32_t block) {
    std::int64_t displacement =
        buffer.blocks.empty() ? block * buffer.stride_bytes : buffer.blocks[block].displacement_bytes;
    return base::displaced(buffer.base, displacement);
}

std::byte* side_block(const Side& side, std::int32_t block) {
    std::int64_t displacement =
        side.blocks.empty() ? block * side.stride_bytes : side.blocks[block].displacement_bytes;
    return base::displaced(side.base, displacement);
}

struct Range {
    const std::byte* begin;
    std::uint64_t bytes;
};

// From the lowest to behind the highest byte of all blocks with layouts.
Range span_of(const Buffer& buffer, std::uint64_t block_bytes) {
    std::uintptr_t low = UINTPTR_MAX, high = 0;
    for (std::int32_t i = 0; i < buffer.block_count; ++i) {
        const std::uint64_t bytes = bytes_of_block(buffer, i, block_bytes);
        if (bytes == 0) continue;
        const Layout::Bounds bounds = buffer.layout_of_block(i).bounds(bytes);
        const auto at = reinterpret_cast<std::uintptr_t>(user_block(buffer, i));
        low = std::min(low, at + static_cast<std::uintptr_t>(bounds.low));
        high = std::max(high, at + static_cast<std::uintptr_t>(bounds.high));
    }
    return {reinterpret_cast<const std::byte*>(low), high - low};
}

// Whether peers can read blocks with layouts where they lie.
bool is_shown_by_layout(const Buffer& buffer, const Demand& demand) {
    constexpr std::uint64_t kWordsBytesMax = 48 * 1024;  // on the stage
    if (!demand.exposed || demand.must_copy || layouts_bytes(buffer) > kWordsBytesMax) return false;
    const Range span = span_of(buffer, demand.block_bytes);
    return heap::is_shared(span.begin, span.bytes);
}

bool goes_by_layout(const Buffer& buffer, const Demand& demand) {
    return buffer.has_layouts() && demand.piped_above_bytes != 0 && demand.bytes > demand.piped_above_bytes;
}

Where choose(const Buffer& buffer, const Demand& demand) {
    bool as_it_is = buffer.packer == nullptr && !demand.must_copy &&
                    (!demand.exposed || is_shared(buffer, demand.block_bytes));
    if (as_it_is || demand.bytes == 0) return Where::user;
    // Received, too, where no other rank touches the buffer.
    if (goes_by_layout(buffer, demand)) return Where::pipe;
    if (!demand.exposed) return Where::private_room;
    const bool may_pipe = demand.piped_above_bytes != 0 && buffer.packer == nullptr && !demand.must_copy;
    const bool is_small = demand.bytes <= (may_pipe ? demand.piped_above_bytes : kSideLimitBytes);
    return is_small ? Where::ring : Where::shared_room;
}

// Plain private buffers are not doubled: another way to read them may be better than a copy of any size. That
// is not so where the network is far slower than a copy.
stats::Reason refusal(const Buffer& buffer, const Demand& demand) {
    if (demand.copies_any) return stats::Reason::none;
    if (buffer.packer != nullptr) return buffer.gapped ? stats::Reason::none : stats::Reason::datatype;
    return demand.must_copy ? stats::Reason::none : demand.if_private;
}

}  // namespace

bool is_shared(const Buffer& buffer, std::uint64_t block_bytes) {
    if (!buffer.blocks.empty())
        return std::ranges::all_of(buffer.blocks, [&](const BlockAt& block) {
            return block.bytes == 0 ||
                   heap::is_shared(base::displaced(buffer.base, block.displacement_bytes), block.bytes);
        });
    // Equal strides: the outermost blocks decide.
    const std::byte* last = base::displaced(buffer.base, (buffer.block_count - 1) * buffer.stride_bytes);
    const std::byte* low = std::min<const std::byte*>(buffer.base, last);
    const std::byte* high = std::max<const std::byte*>(buffer.base, last) + block_bytes;
    return heap::is_shared(low, base::index(high - low));
}

namespace {

Side through_pipe(Side side, std::byte* base) {
    side.where = Where::pipe;
    side.piped = channel::Piped::address;
    side.refusal = stats::Reason::none;
    side.base = base;
    return side;
}

}  // namespace

std::uint64_t layouts_bytes(const Buffer& buffer) {
    std::uint64_t bytes = 0;
    for_each_layout(buffer, [&](const BlockLayout& layout, bool is_new) {
        bytes += sizeof(channel::LayoutAt) + (is_new ? words_of(layout.words) * sizeof(std::int64_t) : 0);
    });
    return bytes;
}

Side plan_side(Store& store, const Buffer& buffer, const Demand& demand, Which which) {
    COCO_CHECK_DEAR(!buffer.on_device || (buffer.packer != nullptr && !buffer.has_layouts()),
                    "the MPI library packs what is in memory of a device");
    COCO_CHECK_DEAR(buffer.block_count >= 0, "a buffer has some blocks, or none");
    Side side{.where = choose(buffer, demand),
              .base = buffer.base,
              .stride_bytes = buffer.stride_bytes,
              .blocks = buffer.blocks};
    // A side that is only received is nobody's to read.
    if (side.where == Where::pipe)
        side.piped = is_shown_by_layout(buffer, demand) ? channel::Piped::shared : channel::Piped::pieces;
    if (is_users(side.where) || side.where == Where::ring) return side;
    if (side.where == Where::shared_room) side.refusal = refusal(buffer, demand);
    if (demand.piped_above_bytes != 0 && side.refusal == demand.if_private)
        return through_pipe(side, buffer.base);
    if (side.refusal != stats::Reason::none) return side;
    side.base = side.where == Where::shared_room ? fetch_shared(store.shared_room(which), demand.bytes)
                                                 : fetch(store.private_room(which), demand.bytes);
    if (side.base == nullptr && side.where == Where::private_room) stop_without_memory(demand.bytes);
    if (side.base == nullptr && demand.piped_above_bytes != 0 && buffer.packer == nullptr)
        return through_pipe(side, buffer.base);
    if (side.base == nullptr)
        side.refusal = buffer.packer != nullptr ? stats::Reason::datatype
                       : demand.must_copy       ? stats::Reason::in_place
                                                : demand.if_private;
    return side;
}

void lay_out(Side& side, const Buffer& buffer, std::byte* base, std::uint64_t block_bytes,
             std::vector<BlockAt>& blocks) {
    if (is_users(side.where)) return;
    side.base = base;
    side.stride_bytes = static_cast<std::int64_t>(block_bytes);
    if (buffer.blocks.empty()) return;
    blocks.resize(buffer.blocks.size());
    std::int64_t at = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        blocks[i] = {at, buffer.blocks[i].bytes};
        at += static_cast<std::int64_t>(blocks[i].bytes);
    }
    side.blocks = blocks;
}

void fill_side(const Side& side, const Buffer& buffer, std::uint64_t block_bytes) {
    if (is_users(side.where)) return;
    for (std::int32_t i = 0; i < buffer.block_count; ++i) {
        std::uint64_t bytes = bytes_of_block(buffer, i, block_bytes);
        if (bytes == 0) continue;
        COCO_CHECK_DEAR(side.base != nullptr, "a side that has blocks has memory");
        if (buffer.has_layouts())
            copy_data({side_block(side, i)}, {user_block(buffer, i), buffer.layout_of_block(i)}, bytes);
        else if (buffer.packer != nullptr)
            buffer.packer->pack(i, side_block(side, i));
        else
            copy_block(side_block(side, i), user_block(buffer, i), bytes);
    }
}

void empty_side(const Side& side, const Buffer& buffer, std::uint64_t block_bytes) {
    if (is_users(side.where)) return;
    for (std::int32_t i = 0; i < buffer.block_count; ++i) {
        std::uint64_t bytes = bytes_of_block(buffer, i, block_bytes);
        if (bytes == 0) continue;
        COCO_CHECK_DEAR(side.base != nullptr, "a side that has blocks has memory");
        if (buffer.has_layouts())
            copy_data({user_block(buffer, i), buffer.layout_of_block(i)}, {side_block(side, i)}, bytes);
        else if (buffer.packer != nullptr)
            buffer.packer->unpack(i, side_block(side, i));
        else
            copy_block(user_block(buffer, i), side_block(side, i), bytes);
    }
}

}  // namespace coco::blocks
