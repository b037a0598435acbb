// SPDX-License-Identifier: BSD-3-Clause
#include "exec/delay.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

namespace coco::exec {

std::uint64_t g_delay_us = 0;

// Does nothing half of the time, otherwise yields or sleeps up to the limit: races show between ranks of
// unequal speed.
void delay() {
    COCO_CHECK_DEAR(g_delay_us != 0, "there are delays where they were asked for");
    thread_local std::uint64_t state = static_cast<std::uint64_t>(getpid()) * 0x9E3779B97F4A7C15u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    if (state % 2 == 0) return;
    if (state % 8 == 1) {
        timespec pause{0, static_cast<long>((state >> 8) % g_delay_us) * 1000};
        nanosleep(&pause, nullptr);
    } else {
        sched_yield();
    }
}

}  // namespace coco::exec
