// SPDX-License-Identifier: BSD-3-Clause
#include "os/clock.h"

#include <sys/syscall.h>

#include <atomic>

#include "base/kernel.h"
#include "os/symbols.h"

namespace coco::os {
namespace {

using Gettime = int (*)(clockid_t clock, timespec* time);

int ask_kernel(clockid_t clock, timespec* time) {
    return static_cast<int>(kernel::call(SYS_clock_gettime, clock, reinterpret_cast<long>(time)));
}

int find_and_ask(clockid_t clock, timespec* time);
// Relaxed: a thread that sees the old one finds the new one itself.
constinit std::atomic<Gettime> g_gettime{find_and_ask};

int find_and_ask(clockid_t clock, timespec* time) {
#if defined(__aarch64__)
    constexpr const char* kName = "__kernel_clock_gettime";
#else
    constexpr const char* kName = "__vdso_clock_gettime";
#endif
    const auto found = reinterpret_cast<Gettime>(const_cast<void*>(kernels_own(kName)));
    const Gettime gettime = found != nullptr ? found : ask_kernel;
    g_gettime.store(gettime, std::memory_order_relaxed);
    return gettime(clock, time);
}

std::uint64_t read_ns(clockid_t clock) {
    timespec time{};
    read_clock(clock, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

int read_clock(clockid_t clock, timespec* time) {
    return g_gettime.load(std::memory_order_relaxed)(clock, time);
}
std::uint64_t now_ns() { return read_ns(CLOCK_MONOTONIC); }
std::uint64_t coarse_now_ns() { return read_ns(CLOCK_MONOTONIC_COARSE); }

}  // namespace coco::os
