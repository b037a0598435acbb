// SPDX-License-Identifier: BSD-3-Clause
#include "os/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace coco::os {

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t timeout_ns) {
    timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000), static_cast<long>(timeout_ns % 1'000'000'000)};
    int saved = errno;
    syscall(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0);
    errno = saved;
}

void futex_wake_all(std::atomic<std::uint32_t>& word) {
    int saved = errno;
    syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    errno = saved;
}

}  // namespace coco::os
