// SPDX-License-Identifier: BSD-3-Clause
#include "base/write_signals.h"

#include <sys/syscall.h>

#include <cerrno>
#include <ctime>

#include "base/kernel.h"

namespace coco::base {
namespace {

constexpr int kSignals[] = {SIGXFSZ, SIGPIPE};
constexpr long kSetBytes = 8;  // of the kernel's sets

sigset_t set_of(int signal) {
    sigset_t set{};
    sigaddset(&set, signal);
    return set;
}

void change_mask(int how, const sigset_t& set, sigset_t* before) {
    kernel::call(SYS_rt_sigprocmask, how, reinterpret_cast<long>(&set), reinterpret_cast<long>(before),
                 kSetBytes);
}

// Takes a pending signal of this thread back.
void take(int signal) {
    const sigset_t set = set_of(signal);
    const timespec at_once{};
    while (kernel::call(SYS_rt_sigtimedwait, reinterpret_cast<long>(&set), 0,
                        reinterpret_cast<long>(&at_once), kSetBytes) == -EINTR) {
    }
}

}  // namespace

HeldWriteSignals::HeldWriteSignals() {
    kernel::call(SYS_rt_sigpending, reinterpret_cast<long>(&pending_), kSetBytes);
    sigset_t both{};
    for (const int signal : kSignals) sigaddset(&both, signal);
    change_mask(SIG_BLOCK, both, &mask_);
}

HeldWriteSignals::~HeldWriteSignals() {
    for (const int signal : kSignals)
        if (sigismember(&pending_, signal) == 0) take(signal);
    change_mask(SIG_SETMASK, mask_, nullptr);
}

}  // namespace coco::base
