// SPDX-License-Identifier: BSD-3-Clause
//
// Monotonic time for waiting and for reports. Any process of the node sees the same clock. It is the kernel's
// own, also where another preloaded library shows the program a different one. Called everywhere, below
// malloc too. Thread safety: any thread. Fails: no.
#pragma once
#include <cstdint>
#include <ctime>

namespace coco::os {

std::uint64_t now_ns();
// The same clock as of the kernel's last tick, some milliseconds ago at most: cheaper to read.
std::uint64_t coarse_now_ns();
// As clock_gettime().
int read_clock(clockid_t clock, timespec* time);

}  // namespace coco::os
