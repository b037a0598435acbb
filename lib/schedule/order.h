// SPDX-License-Identifier: BSD-3-Clause
//
// Orders in which ranks go through blocks or peers: the Morton curve over a matrix, nearest domain first over
// peers. Called by algorithms while they make a schedule. Thread safety: pure functions.
//
// The Morton curve of any matrix is that of the balanced recursion: cut the longer side in two (equal sides:
// the rows; an odd side: the first half is the longer), go through the upper or left half, then through the
// other. For a square whose side is a power of two this interleaves the bits of row and column, the row's
// above.
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

// Where on the curve a cell lies, from 0, in O(log cells). Requires: the cell is in the matrix.
std::int64_t morton_position(Matrix matrix, Cell cell);
// The cell at `position`, in O(log cells). Requires: 0 <= position < cells.
Cell morton_cell(Matrix matrix, std::int64_t position);
// The cells at positions first, ..., first + count - 1, in O(count + log cells); by the CPU's bit extraction
// where it has that and the matrix allows it. Requires: they are on the curve.
std::vector<Cell> morton_range(Matrix matrix, std::int64_t first, std::int64_t count);

// All ranks but `rank`: its own domain first, then the domains after it round robin; within each a rank
// begins behind its own place, so that no two ranks of a domain begin with the same peer. One domain: rank +
// 1, ...
std::vector<std::int32_t> peers_nearest_first(const topology::NodeMap& map, std::int32_t rank);

}  // namespace coco::schedule
