// SPDX-License-Identifier: BSD-3-Clause
//
// Source:     libcoco, after Li, Zhang, Hoefler 2018, section 2.2
// Idea:       All blocks are a matrix, with a row for each receiver and a column for each sender. The ranks
//             are cut into bands of `width` ranks, and the matrix into tiles of a band by a band. In an
//             alltoall a band copies the tiles of its receive areas, in an allgather it sends its blocks to
//             all. With as many ranks in a band as a cache line has blocks (1 to 8), a rank reads and writes
//             each line once. Morton's squares are as wide as they are high, whatever the size of a line.
// Needs:      one node; send and receive buffers on the shared heap
// Steps:      per rank P copies, 2 raises, about 2 (width + P / width) waits
// Bytes:      per rank P blocks
// Scratch:    none
// Good for:   blocks below a cache line on 16 and more ranks of one domain
#include <algorithm>
#include <vector>

#include "algorithms/blocks.h"
#include "base/index.h"

namespace coco::algorithms {
namespace {

struct Band {
    std::int32_t first, members;
};

Band band_of(const Shape& shape, std::int32_t rank) {
    const std::int32_t width = shape.parameters.width, first = rank / width * width;
    return {first, std::min(width, shape.map->ranks() - first)};
}

// The place of a column in a row, and the other way round: every second row goes back, so that what was
// touched last comes first.
std::int32_t back_and_forth(std::int32_t row, std::int32_t column, std::int32_t columns) {
    return row % 2 == 0 ? column : columns - 1 - column;
}

// Who copies a block. In an alltoall the blocks for a band are tiles, one for each band of senders, its own
// first, and each member takes an equal share of them. In an allgather a member serves every so many ranks,
// itself first.
std::int32_t copier_of(const Shape& shape, std::int32_t sender, std::int32_t receiver) {
    const std::int32_t ranks = shape.map->ranks();
    const Band from = band_of(shape, sender), to = band_of(shape, receiver);
    if (shape.exchange != Exchange::alltoall)
        return from.first + (receiver - from.first + ranks) % ranks % from.members;
    const std::int32_t row = receiver - to.first, senders_before = (from.first - to.first + ranks) % ranks;
    const std::int32_t place = senders_before * to.members + row * from.members +
                               back_and_forth(row, sender - from.first, from.members);
    return to.first + place / ranks;
}

class Tiles {
  public:
    explicit Tiles(const Shape& shape) : shape_(shape), here_(base::index(shape.map->ranks())) {
        here_[base::index(shape.rank)] = true;
    }

    schedule::Schedule take() {
        steps_.raise(schedule::kArrived);
        shape_.exchange == Exchange::alltoall ? fill_band() : serve_from_band();
        steps_.raise(schedule::kDone);
        std::vector<bool> touching(here_.size());
        for (std::int32_t rank = 0; rank < ranks_; ++rank) {
            touching[base::index(copier_of(shape_, rank, shape_.rank))] = true;
            touching[base::index(copier_of(shape_, shape_.rank, rank))] = true;
        }
        for (std::int32_t rank = 0; rank < ranks_; ++rank)
            if (touching[base::index(rank)] && rank != shape_.rank) steps_.wait(rank, schedule::kDone);
        return steps_.take();
    }

  private:
    void await(std::int32_t rank) {
        if (!here_[base::index(rank)]) steps_.wait(rank, schedule::kArrived);
        here_[base::index(rank)] = true;
    }
    // A row of a tile, as far as it is this rank's.
    void copy_row(std::int32_t row, const Band& senders, std::int32_t receiver) {
        for (std::int32_t i = 0; i < senders.members; ++i) {
            const std::int32_t sender = senders.first + back_and_forth(row, i, senders.members);
            if (copier_of(shape_, sender, receiver) != shape_.rank) continue;
            await(receiver);
            await(sender);
            copy_block(steps_, shape_.exchange, sender, receiver);
        }
    }
    void fill_band() {
        for (std::int32_t before = 0; before < ranks_;) {
            const Band senders = band_of(shape_, (band_.first + before) % ranks_);
            for (std::int32_t row = 0; row < band_.members; ++row) copy_row(row, senders, band_.first + row);
            before += senders.members;
        }
    }
    void serve_from_band() {
        for (std::int32_t at = shape_.rank - band_.first, row = 0; at < ranks_; at += band_.members)
            copy_row(row++, band_, (band_.first + at) % ranks_);
    }

    const Shape& shape_;
    const std::int32_t ranks_ = shape_.map->ranks();
    const Band band_ = band_of(shape_, shape_.rank);
    std::vector<bool> here_;  // by rank: whose arrival is known
    schedule::Builder steps_;
};

}  // namespace

schedule::Schedule make_tiled(const Shape& shape) { return Tiles(shape).take(); }

}  // namespace coco::algorithms
