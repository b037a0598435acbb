// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/order.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/check.h"
#include "base/index.h"

namespace coco::schedule {
namespace {

// A part of the matrix, which knows its two halves in the order of the curve.
struct Box {
    Cell corner;
    Matrix size;

    bool single() const { return size.cells() == 1; }
    bool cuts_rows() const { return size.rows >= size.columns; }
    Box half(bool second) const {
        Box box = *this;
        std::int32_t& extent = cuts_rows() ? box.size.rows : box.size.columns;
        std::int32_t first = (extent + 1) / 2;
        if (second) (cuts_rows() ? box.corner.row : box.corner.column) += first;
        extent = second ? extent - first : first;
        return box;
    }
};

// Appends the cells of `box` from position `first` of its own curve on, until `cells` has `wanted` cells.
void walk(const Box& box, std::int64_t first, std::size_t wanted, std::vector<Cell>& cells) {
    if (cells.size() == wanted) return;
    if (box.single()) {
        cells.push_back(box.corner);
        return;
    }
    Box upper = box.half(false);
    std::int64_t in_upper = upper.size.cells();
    if (first < in_upper) walk(upper, first, wanted, cells);
    walk(box.half(true), std::max<std::int64_t>(first - in_upper, 0), wanted, cells);
}

#if defined(__x86_64__)
__attribute__((target("bmi2"))) void extract(std::uint64_t first, std::int64_t count,
                                             std::vector<Cell>& cells) {
    for (std::uint64_t code = first; count > 0; --count, ++code)
        cells.push_back({static_cast<std::int32_t>(__builtin_ia32_pext_di(code, 0xAAAAAAAAAAAAAAAAu)),
                         static_cast<std::int32_t>(__builtin_ia32_pext_di(code, 0x5555555555555555u))});
}
bool can_extract() { return __builtin_cpu_supports("bmi2") != 0; }
#else
void extract(std::uint64_t, std::int64_t, std::vector<Cell>&) {}
bool can_extract() { return false; }
#endif

}  // namespace

// Does what the recursion of boxes does, but with the lengths of sides alone, as multinode_morton asks for
// thousands of cells.
std::int64_t morton_position(Matrix matrix, Cell cell) {
    COCO_CHECK_DEAR(
        cell.row >= 0 && cell.row < matrix.rows && cell.column >= 0 && cell.column < matrix.columns,
        "a cell with a position is in the matrix");
    std::int64_t position = 0;
    // Goes into that half of the side `extent` in which `at` lies. The other side is `width` long.
    auto halve = [&](std::int32_t& extent, std::int32_t& at, std::int32_t width) {
        std::int32_t first = (extent + 1) / 2;
        bool second = at >= first;
        position += second ? std::int64_t{first} * width : 0;
        at -= second ? first : 0;
        extent = second ? extent - first : first;
    };
    while (matrix.rows > 1 || matrix.columns > 1)
        if (matrix.rows >= matrix.columns)
            halve(matrix.rows, cell.row, matrix.columns);
        else
            halve(matrix.columns, cell.column, matrix.rows);
    return position;
}

std::vector<Cell> morton_range(Matrix matrix, std::int64_t first, std::int64_t count) {
    COCO_CHECK(first >= 0 && count >= 0 && count <= matrix.cells() - first,
               "a range of positions is on the curve");
    std::vector<Cell> cells;
    if (count == 0) return cells;
    cells.reserve(base::index(count));
    bool interleaves =
        matrix.rows == matrix.columns && std::has_single_bit(static_cast<std::uint32_t>(matrix.rows));
    if (interleaves && can_extract())
        extract(base::index(first), count, cells);
    else
        walk({{0, 0}, matrix}, first, base::index(count), cells);
    return cells;
}

std::vector<std::int32_t> peers_nearest_first(const topology::NodeMap& map, std::int32_t rank) {
    COCO_CHECK(rank >= 0 && rank < map.ranks(), "a rank with peers is in the map");
    std::vector<std::int32_t> peers;
    std::int32_t domains = map.domains(), own_domain = map.domain[base::index(rank)];
    auto own = map.ranks_in_domain(own_domain);
    auto behind_me = std::upper_bound(own.begin(), own.end(), rank) - own.begin();
    for (std::int32_t i = 0; i < domains; ++i) {
        auto members = map.ranks_in_domain((own_domain + i) % domains);
        std::rotate(members.begin(), members.begin() + behind_me % std::ssize(members), members.end());
        std::copy_if(members.begin(), members.end(), std::back_inserter(peers),
                     [&](auto r) { return r != rank; });
    }
    COCO_CHECK(std::ssize(peers) == map.ranks() - 1, "all other ranks are peers, each once");
    return peers;
}

}  // namespace coco::schedule
