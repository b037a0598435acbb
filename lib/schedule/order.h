// SPDX-License-Identifier: BSD-3-Clause
//
// Orders in which ranks go through blocks or peers: the Morton curve over a matrix of blocks, and peers with
// the nearest domain first. Called by algorithms while they make a schedule. Thread safety: pure functions.
//
// The Morton curve of any matrix is that of a balanced recursion: cut the longer side in two (if both are
// equal, the rows; if it is odd, the first half is the longer one), go through the upper or left half, then
// through the other half. For a square whose side is a power of two the position on the curve has the bits of
// row and column interleaved, with the row's bit above the column's.
#pragma once
#include <cstdint>
#include <vector>

#include "topology/node_map.h"

namespace coco::schedule {

struct Matrix {
    std::int32_t rows;
    std::int32_t columns;
    std::int64_t cells() const { return std::int64_t{rows} * columns; }
};
struct Cell {
    std::int32_t row;
    std::int32_t column;
    friend bool operator==(const Cell&, const Cell&) = default;
};

// The position of a cell on the curve, counted from 0, in O(log cells). Requires: the cell is in the matrix.
std::int64_t morton_position(Matrix matrix, Cell cell);
// The cells at positions first, ..., first + count - 1, in O(count + log cells); by the CPU's bit extraction
// if it has that and the matrix is such a square. Requires: the positions are on the curve.
std::vector<Cell> morton_range(Matrix matrix, std::int64_t first, std::int64_t count);

// All ranks but `rank`: first those of its own domain, then those of the domains after it, round robin.
// Within a domain the order begins behind the rank's own index in its domain, so that no two ranks of a
// domain begin with the same peer. In a map with one domain that is rank + 1, rank + 2, ...
std::vector<std::int32_t> peers_nearest_first(const topology::NodeMap& map, std::int32_t rank);

}  // namespace coco::schedule
