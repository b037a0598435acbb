// SPDX-License-Identifier: BSD-3-Clause
//
// Source:     libcoco, after Li, Zhang, Hoefler 2018, section 2.2
// Idea:       All blocks are a matrix, with a row for each receiver and a column for each sender. The ranks
//             are cut into groups of up to 8 with consecutive numbers. The members of a group fill the
//             receive areas of the group: each copies the blocks of its share of the senders. So a rank reads
//             each line of a send area once, with all the blocks for its group, and writes runs of P/8
//             blocks. Morton's squares are as high as wide, whether or not lines have so many blocks.
// Needs:      one node; send and receive buffers on the shared heap
// Steps:      per rank 8 copies of P/8 blocks, 2 raises, about 2 (8 + P/8) waits
// Bytes:      per rank P blocks
// Scratch:    none
// Good for:   blocks up to half a cache line and many ranks; larger blocks share no lines: naive
#include <algorithm>
#include <vector>

#include "algorithms/blocks.h"
#include "base/index.h"
#include "topology/share.h"

namespace coco::algorithms {
namespace {

// The ranks of a group, which share the senders.
struct Tile {
    std::int32_t first, members, ranks;

    std::int32_t copier_of(std::int32_t sender) const {
        return first + static_cast<std::int32_t>(topology::part_of(ranks, members, sender));
    }
};

// As wide as a line has blocks of 8 bytes; narrower where a member would have fewer senders than that.
constexpr std::int32_t width_for(std::int32_t ranks) {
    std::int32_t width = 1;
    while (width < 8 && 4 * width * width <= ranks) width *= 2;
    return width;
}

Tile tile_of(std::int32_t rank, std::int32_t ranks) {
    const std::int32_t width = width_for(ranks), first = rank / width * width;
    return {first, std::min(width, ranks - first), ranks};
}

}  // namespace

schedule::Schedule make_tiled(const Shape& shape) {
    const std::int32_t ranks = shape.map->ranks();
    const Tile own = tile_of(shape.rank, ranks);
    const topology::Share senders = topology::share_of(ranks, own.members, shape.rank - own.first);
    schedule::Builder steps;
    std::vector<bool> here(base::index(ranks));  // whose arrival is known
    here[base::index(shape.rank)] = true;
    auto await = [&](std::int32_t rank) {
        if (!here[base::index(rank)]) steps.wait(rank, schedule::kArrived);
        here[base::index(rank)] = true;
    };
    steps.raise(schedule::kArrived);
    for (std::int32_t i = 0; i < own.members; ++i) {  // each member begins with its own receive area
        const std::int32_t receiver = own.first + (shape.rank - own.first + i) % own.members;
        await(receiver);
        for (std::int64_t k = senders.first; k < senders.first + senders.count; ++k) {
            const auto sender = static_cast<std::int32_t>(k);
            await(sender);
            copy_block(steps, shape.exchange, sender, receiver);
        }
    }
    steps.raise(schedule::kDone);
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
        const Tile tile = tile_of(rank, ranks);
        const bool touches = tile.first == own.first || tile.copier_of(shape.rank) == rank;
        if (touches && rank != shape.rank) steps.wait(rank, schedule::kDone);
    }
    return steps.take();
}

}  // namespace coco::algorithms
