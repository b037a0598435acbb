// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks, counts and positions are signed, as MPI has them; containers and sizes are unsigned. Thread safety:
// pure functions. Fails: in builds with dear checks a number that does not fit ends the process.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace coco::base {

// The number as a place in a container, or as a size. Requires: it is not below 0. (Or an enumerator, whose
// number counts.)
template <class Number>
constexpr std::size_t index(Number number) {
    static_assert(std::is_integral_v<Number> || std::is_enum_v<Number>, "a place is a whole number");
    if constexpr (std::is_signed_v<Number>) COCO_CHECK_DEAR(number >= 0, "a place is not below 0");
    return static_cast<std::size_t>(number);
}
// A size, or a place in a container, as the number of a rank or of a block. Requires: it fits.
template <class Size>
constexpr std::int32_t number(Size size) {
    static_assert(std::is_integral_v<Size>, "a size is a whole number");
    COCO_CHECK_DEAR(std::in_range<std::int32_t>(size), "a number of a rank or a block has 32 bits");
    return static_cast<std::int32_t>(size);
}

}  // namespace coco::base
