// SPDX-License-Identifier: BSD-3-Clause
//
// Li, Zhang, Hoefler 2018, section 2.3: how many lines a rank misses in its cache, which is ideal, and empty
// before the call. Equations 1, 2, 4, 6 and 8; the paper uses those of the sequential order for the parallel
// one, too. Thread safety: a pure function.
#pragma once
#include <cmath>
#include <optional>
#include <string_view>

#include "bench/cache/replay.h"

namespace coco::cache {

// Of eager, which the paper does not have: what the same reckoning gives. Returns: nothing for others.
inline std::optional<double> formula(std::string_view algorithm, const Call& call, std::uint64_t line_bytes,
                                     std::uint64_t cache_bytes) {
    const double ranks = call.ranks, bytes = static_cast<double>(call.block_bytes);
    const double cache = static_cast<double>(cache_bytes);
    const auto lines = [&](double b) { return std::ceil(b / static_cast<double>(line_bytes)); };
    const bool personal = call.exchange == algorithms::Exchange::alltoall;
    const double row = lines(ranks * bytes), column = ranks * lines(bytes);
    if (algorithm == "naive") return row + column;  // 1, 4
    if (algorithm == "eager") return 2 * (personal ? row : lines(bytes)) + row + column;
    if (algorithm != "morton" && algorithm != "numa_morton") return std::nullopt;
    if (personal) return 2 * row;                // 2
    if (bytes > cache / 2) return row + column;  // 4
    const double side = std::sqrt(cache / bytes);
    return row + (ranks >= side ? column / side : lines(bytes));  // 6, 8
}

}  // namespace coco::cache
