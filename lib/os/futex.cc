// SPDX-License-Identifier: BSD-3-Clause
#include "os/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <climits>
#include <ctime>

#include "base/kernel.h"

namespace coco::os {
namespace {

// Not FUTEX_PRIVATE_FLAG: the sleepers are in other processes.
void futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) {
    kernel::call(SYS_futex, reinterpret_cast<long>(&word), operation, static_cast<long>(value),
                 reinterpret_cast<long>(timeout));
}

}  // namespace

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t timeout_ns) {
    timespec timeout{};
    timeout.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000u);
    timeout.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000u);
    futex(word, FUTEX_WAIT, expected, &timeout);
}

void futex_wake_all(const std::atomic<std::uint32_t>& word) { futex(word, FUTEX_WAKE, INT_MAX, nullptr); }

}  // namespace coco::os
