// SPDX-License-Identifier: BSD-3-Clause
// Integer helpers that every room may use.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

namespace coco::base {

// The next multiple of `unit` at or above `value`. Requires: unit is a power of two.
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
    return (value + unit - 1) & ~(unit - 1);
}
// The address `bytes` away from another, which may be null or point to what another process sees: pointer
// arithmetic is defined within one object only, and empty blocks may have any address.
template <class Byte>
Byte* displaced(Byte* address, std::int64_t bytes) {
    return reinterpret_cast<Byte*>(reinterpret_cast<std::uintptr_t>(address) +
                                   static_cast<std::uintptr_t>(bytes));
}
// The class of blocks of so many bytes: those of more than 2^(n-1) and up to 2^n bytes have n.
constexpr int size_class(std::uint64_t bytes) { return bytes <= 1 ? 0 : std::bit_width(bytes - 1); }
// floor(log2(value)), 0 for 0.
constexpr int log2_floor(std::uint64_t value) { return value == 0 ? 0 : std::bit_width(value) - 1; }

}  // namespace coco::base
