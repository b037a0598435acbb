// SPDX-License-Identifier: BSD-3-Clause
//
// Monotonic time for waiting and for reports. Any thread, any process of the node sees the same clock.
#pragma once
#include <cstdint>
#include <ctime>

namespace coco::os {

inline std::uint64_t now_ns() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

// The same clock as of the kernel's last tick, some milliseconds ago at most: cheaper to read.
inline std::uint64_t coarse_now_ns() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace coco::os
