// SPDX-License-Identifier: BSD-3-Clause
// Nanoseconds of the monotonic clock.
#pragma once
#include <time.h>

#include <cstdint>

namespace coco::os {

inline std::uint64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace coco::os
