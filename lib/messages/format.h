// SPDX-License-Identifier: BSD-3-Clause
//
// How messages look whose blocks have sizes of their own: the lengths of the blocks, then their data. Data
// that is not small follows in a second message, once its receiver knows how much it is. Long blocks are only
// announced: they go straight from their sender to their receiver. Used by messages/carrier.h and its ports.
// Knows no MPI.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/bits.h"
#include "base/check.h"
#include "base/index.h"

namespace coco::messages {

// Data that a message brings along with the lengths.
inline constexpr std::uint64_t kAlongBytes = 4096;
// Longer blocks of personal exchanges of so many ranks go straight to their receivers. Together shorter ones
// are cheaper, up to 64 KiB (bench/collective on 4 x 4 and 2 x 8 ranks), but a rank must have room for one
// from each rank.
inline std::uint64_t straight_bytes(std::int32_t ranks) {
    constexpr std::uint64_t kRoomBytes = 4 << 20, kLeast = 16 * 1024, kMost = 64 * 1024;
    COCO_CHECK_DEAR(ranks > 0, "an exchange has ranks");
    return std::clamp(kRoomBytes / base::index(ranks), kLeast, kMost);
}

// A block that travels, or is announced.
struct Item {
    const std::byte* at = nullptr;
    std::uint64_t bytes = 0;
    bool straight = false;  // its data is not here: it goes straight

    std::uint64_t travelling_bytes() const { return straight ? 0 : bytes; }
};

// The bytes of the two messages that a load of blocks takes; the second one may be missing.
struct Parts {
    std::uint64_t first_bytes, second_bytes;
};

// The form of a call's messages; equal on all ranks.
struct Format {
    std::uint64_t opening_bytes = 0;  // the size of the opening, which precedes the lengths
    std::uint64_t length_bytes = 8;   // the size of a length: 4 or 8
    std::uint64_t along_bytes = kAlongBytes;
    // Not 0: all data goes along, and a message has at most so many bytes for each of its blocks.
    std::uint64_t most_block_bytes = 0;

    // Not 0: blocks that are longer go straight, and lengths bear no mark for it.
    std::uint64_t straight_bytes = 0;

    // The longest length that can be told; it stands for blocks that are as long, or longer.
    std::uint64_t longest_told() const {
        return straight_bytes != 0 ? straight_bit() | (straight_bit() - 1) : straight_bit() - 1;
    }
    // The size of the opening and the lengths, which come before the data.
    std::uint64_t head_bytes(std::int32_t blocks) const {
        COCO_CHECK_DEAR(blocks >= 0, "a message has some blocks, or none");
        COCO_CHECK_DEAR(length_bytes == 4 || length_bytes == 8, "lengths have 32 or 64 bits");
        return opening_bytes + base::round_up(base::index(blocks) * length_bytes, sizeof(std::uint64_t));
    }
    // The first message is no longer than this.
    std::uint64_t most_bytes(std::int32_t blocks) const {
        if (most_block_bytes != 0) return base::index(blocks) * most_block_bytes;
        return head_bytes(blocks) + along_bytes;
    }
    Parts parts_of(std::int32_t blocks, std::uint64_t data_bytes) const {
        const std::uint64_t head = head_bytes(blocks);
        // Only short messages may be shorter than their receiver asks for (mpi/wire.h).
        constexpr std::uint64_t kLong = 1 << 30;
        COCO_CHECK_DEAR(most_block_bytes == 0 || head + data_bytes <= most_bytes(blocks),
                        "data that goes along fits into its message");
        if (most_block_bytes != 0)
            return {most_bytes(blocks) > kLong ? most_bytes(blocks) : head + data_bytes, 0};
        return data_bytes <= along_bytes ? Parts{head + data_bytes, 0} : Parts{head, data_bytes};
    }

    void write_length(std::byte* message, std::int32_t i, const Item& item) const {
        COCO_CHECK_DEAR(item.straight || item.bytes <= longest_told(),
                        "the length of a block that travels can be told");
        COCO_CHECK_DEAR(straight_bytes == 0 || item.straight == (item.bytes > straight_bytes),
                        "the length of a block says whether it goes straight");
        std::uint64_t told = std::min(item.bytes, longest_told());
        if (straight_bytes == 0 && item.straight) told |= straight_bit();
        std::memcpy(length_at(message, i), &told,
                    length_bytes);  // the low bytes: little endian, as all we run on
    }
    // Returns: an item without a place.
    Item read_length(const std::byte* message, std::int32_t i) const {
        std::uint64_t told = 0;
        std::memcpy(&told, length_at(message, i), length_bytes);
        if (straight_bytes != 0) return {nullptr, told, told > straight_bytes};
        return {nullptr, told & ~straight_bit(), (told & straight_bit()) != 0};
    }
    // The data that travels with these lengths.
    std::uint64_t data_bytes(const std::byte* message, std::int32_t blocks) const {
        std::uint64_t bytes = 0;
        for (std::int32_t i = 0; i < blocks; ++i) bytes += read_length(message, i).travelling_bytes();
        return bytes;
    }

  private:
    std::uint64_t straight_bit() const { return std::uint64_t{1} << (8 * length_bytes - 1); }
    template <class Byte>
    Byte* length_at(Byte* message, std::int32_t i) const {
        COCO_CHECK_DEAR(i >= 0, "a length is that of a block");
        return message + opening_bytes + base::index(i) * length_bytes;
    }
};

}  // namespace coco::messages
