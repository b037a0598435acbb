// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/order.h"

#include <catch2/catch.hpp>
#include <set>

using namespace coco;
using namespace coco::schedule;

namespace {

// The cell at a position, as the curve is defined.
Cell cell_at(Matrix matrix, std::int64_t position) {
    Cell cell{0, 0};
    while (matrix.cells() > 1) {
        const bool cuts_rows = matrix.rows >= matrix.columns;
        std::int32_t& extent = cuts_rows ? matrix.rows : matrix.columns;
        const std::int32_t first = (extent + 1) / 2;
        const std::int64_t cells = std::int64_t{first} * (cuts_rows ? matrix.columns : matrix.rows);
        const bool second = position >= cells;
        if (second) position -= cells;
        (cuts_rows ? cell.row : cell.column) += second ? first : 0;
        extent = second ? extent - first : first;
    }
    return cell;
}

std::vector<Cell> by_recursion(Matrix matrix) {
    std::vector<Cell> cells;
    for (std::int64_t z = 0; z < matrix.cells(); ++z) cells.push_back(cell_at(matrix, z));
    return cells;
}

// Bit i of row and column from bits 2 i + 1 and 2 i.
Cell by_interleaving(std::uint64_t z) {
    Cell cell{0, 0};
    for (int bit = 0; bit < 31; ++bit) {
        cell.column |= static_cast<std::int32_t>((z >> (2 * bit) & 1) << bit);
        cell.row |= static_cast<std::int32_t>((z >> (2 * bit + 1) & 1) << bit);
    }
    return cell;
}

}  // namespace

TEST_CASE("the Morton curve goes through every cell of any matrix once", "[order]") {
    for (std::int32_t rows = 1; rows <= 20; ++rows)
        for (std::int32_t columns = 1; columns <= 20; ++columns) {
            Matrix matrix{rows, columns};
            std::set<std::pair<int, int>> seen;
            for (std::int64_t z = 0; z < matrix.cells(); ++z) {
                Cell cell = cell_at(matrix, z);
                seen.emplace(cell.row, cell.column);
                CHECK((cell.row >= 0 && cell.row < rows && cell.column >= 0 && cell.column < columns));
                CHECK(morton_position(matrix, cell) == z);
            }
            CHECK(static_cast<std::int64_t>(seen.size()) == matrix.cells());
        }
}

TEST_CASE("for powers of two the curve interleaves the bits of row and column", "[order]") {
    for (std::int32_t side : {1, 2, 4, 8, 16, 32, 64}) {
        Matrix matrix{side, side};
        auto cells = by_recursion(matrix);
        for (std::size_t z = 0; z < cells.size(); ++z) CHECK(cells[z] == by_interleaving(z));
        CHECK(morton_range(matrix, 0, matrix.cells()) ==
              cells);  // by the CPU's bit extraction, where it has that
    }
}

TEST_CASE("the curve of five by five is the balanced one", "[order]") {
    // Rows 0-2 and 3-4, columns 0-2 and 3-4: no long line along the borders.
    auto cells = morton_range({5, 5}, 0, 25);
    CHECK(std::vector<Cell>(cells.begin(), cells.begin() + 9) ==
          std::vector<Cell>{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {1, 2}, {2, 0}, {2, 1}, {2, 2}});
    CHECK(cells[9] == Cell{0, 3});
    CHECK(cells[15] == Cell{3, 0});
    CHECK(cells[24] == Cell{4, 4});
}

TEST_CASE("any range of the curve is that part of it", "[order]") {
    for (Matrix matrix : {Matrix{1, 1}, {5, 5}, {8, 8}, {3, 11}, {16, 4}, {13, 7}}) {
        auto all = by_recursion(matrix);
        for (std::int64_t first = 0; first < matrix.cells(); ++first)
            for (std::int64_t count = 0; first + count <= matrix.cells(); count += 1 + count / 3)
                CHECK(morton_range(matrix, first, count) ==
                      std::vector<Cell>(all.begin() + first, all.begin() + first + count));
    }
}

TEST_CASE("a share of a large curve is found without the rest", "[order]") {
    Matrix matrix{40000, 40000};  // 1.6e9 cells
    auto cells = morton_range(matrix, 1'234'567'890, 40000);
    CHECK(cells.size() == 40000);
    CHECK(morton_position(matrix, cells.front()) == 1'234'567'890);
    CHECK(morton_position(matrix, cells.back()) == 1'234'567'890 + 39999);
}

TEST_CASE("peers come nearest domain first, each rank from its own place on", "[order]") {
    using Ranks = std::vector<std::int32_t>;
    auto map = topology::one_node(4);
    CHECK(peers_nearest_first(map, 1) == Ranks{2, 3, 0});
    CHECK(peers_nearest_first(map, 3) == Ranks{0, 1, 2});
    CHECK(peers_nearest_first(topology::one_node(1), 0) == Ranks{});
    auto two = topology::make_node_map({0, 0, 0, 0, 0}, {0, 1, 0, 1, 0});  // domains {0 2 4} and {1 3}
    CHECK(peers_nearest_first(two, 0) == Ranks{2, 4, 3, 1});
    CHECK(peers_nearest_first(two, 3) == Ranks{1, 4, 0, 2});
}
