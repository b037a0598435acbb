// SPDX-License-Identifier: BSD-3-Clause
#include "base/check.h"

#include <sys/syscall.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/kernel.h"
#include "base/log.h"

namespace coco::base {
namespace {

// A handler of the program's or of the MPI library's may allocate, and this thread may hold the allocator's
// lock: the rank would wait for itself, and the others for it.
void drop_abort_handler() {
    long action[8] = {};  // as the kernel has it: the default action, without flags and mask
    constexpr long kMaskBytes = 8;
    kernel::call(SYS_rt_sigaction, SIGABRT, static_cast<long>(reinterpret_cast<std::uintptr_t>(action)), 0,
                 kMaskBytes);
}

}  // namespace

void fail_check(const char* what, const char* file, int line) {
    const char* name = std::strrchr(file, '/');
    log_last(Text() << "libcoco is broken, please report it: not true: " << what << " ("
                    << (name != nullptr ? name + 1 : file) << ":" << line
                    << "); COCO_DISABLE=1 switches libcoco off");
    drop_abort_handler();
    std::abort();
}

}  // namespace coco::base
