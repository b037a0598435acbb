// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/sides.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/index.h"

namespace coco::schedule {
namespace {

std::int32_t send_side(std::int32_t rank) { return 2 * rank; }
std::int32_t recv_side(std::int32_t rank) { return 2 * rank + 1; }

// A union-find structure: every side points to a side that is no larger, and so on to the least of its group.
std::int32_t& parent(std::span<std::int32_t> sides, std::int32_t side) {
    COCO_CHECK_DEAR(side >= 0 && base::index(side) < sides.size(), "a side is one of the sides of the ranks");
    return sides[base::index(side)];
}

std::int32_t least_of(std::span<std::int32_t> sides, std::int32_t side) {
    while (parent(sides, side) != side) {
        std::int32_t& up = parent(sides, side);
        up = parent(sides, up);
        side = up;
    }
    return side;
}

void unite(std::span<std::int32_t> sides, std::int32_t a, std::int32_t b) {
    a = least_of(sides, a);
    b = least_of(sides, b);
    if (a != b) parent(sides, std::max(a, b)) = std::min(a, b);
}

// Goes upwards, so that the side to which each one points already points to the least of its group.
void flatten(std::span<std::int32_t> sides) {
    for (std::int32_t& least : sides) least = parent(sides, least);
}

// The groups of a rank's two sides, the lower first. A side without edges counts as the other one; kNone:
// neither side has edges.
using Groups = std::pair<std::int32_t, std::int32_t>;

constexpr std::int32_t kNone = -1;

std::vector<std::int32_t> groups_of(std::span<const std::int32_t> sides) {
    std::vector<std::int32_t> groups(sides.begin(), sides.end());
    std::vector<char> shared(sides.size());
    for (std::size_t side = 0; side < sides.size(); ++side)
        if (base::index(sides[side]) != side) shared[side] = shared[base::index(sides[side])] = 1;
    for (std::size_t side = 0; side < sides.size(); ++side)
        if (!shared[side]) groups[side] = kNone;
    return groups;
}

Groups groups_at(const std::vector<std::int32_t>& groups, std::size_t rank) {
    std::int32_t send = groups[2 * rank], recv = groups[2 * rank + 1];
    if (send == kNone) send = recv;
    if (recv == kNone) recv = send;
    return std::minmax({send, recv});
}

}  // namespace

Sides sides_of(std::int32_t rank, std::int32_t ranks, const Neighborhood& neighborhood) {
    COCO_CHECK(rank >= 0 && rank < ranks, "a rank with sides is one of the ranks");
    Sides sides(2 * base::index(ranks));
    std::iota(sides.begin(), sides.end(), 0);
    for (std::int32_t to : neighborhood.destinations)
        if (to >= 0) unite(sides, send_side(rank), recv_side(to));
    for (const Edge& edge : neighborhood.incoming) {
        COCO_CHECK(edge.receiver == rank, "incoming edges end at the rank that knows them");
        unite(sides, send_side(edge.sender), recv_side(rank));
    }
    flatten(sides);
    return sides;
}

void join_sides(std::span<const std::int32_t> more, std::span<std::int32_t> sides) {
    COCO_CHECK(more.size() == sides.size(), "what is joined is of the same number of ranks");
    for (std::size_t side = 0; side < more.size(); ++side) unite(sides, base::number(side), more[side]);
    flatten(sides);
}

std::int32_t groups_of_all(std::span<const std::int32_t> sides) {
    COCO_CHECK(!sides.empty() && sides.size() % 2 == 0, "each rank has two sides");
    const std::vector<std::int32_t> groups = groups_of(sides);
    const Groups first = groups_at(groups, 0);
    for (std::size_t rank = 0; 2 * rank < groups.size(); ++rank)
        if (const Groups here = groups_at(groups, rank); here != first || here.first == kNone) return 0;
    return first.first == first.second ? 1 : 2;
}

}  // namespace coco::schedule
