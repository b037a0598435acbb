// SPDX-License-Identifier: BSD-3-Clause
//
// In the place of lib/os/cpu.h: a pause is a look in vain (explorer.h).
#pragma once
#include <cstdint>

#include "base/bits.h"

namespace coco::os {
inline constexpr std::uint64_t kLineBytes = 64, kLeastLineBytes = 64;
constexpr std::uint64_t line_up(std::uint64_t bytes) { return base::round_up(bytes, kLineBytes); }
void pause();
}  // namespace coco::os
