// SPDX-License-Identifier: BSD-3-Clause
#include "base/lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include "base/kernel.h"

namespace coco::base {

void Lock::sleep() { kernel::call(SYS_futex, reinterpret_cast<long>(&state_), FUTEX_WAIT_PRIVATE, kAwaited); }

void Lock::wake_one() { kernel::call(SYS_futex, reinterpret_cast<long>(&state_), FUTEX_WAKE_PRIVATE, 1); }

}  // namespace coco::base
