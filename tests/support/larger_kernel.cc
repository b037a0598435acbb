// SPDX-License-Identifier: BSD-3-Clause
//
// The system calls that libcoco makes directly (base/kernel.h), to a kernel with larger pages
// (larger_pages.c): linked in the place of base/bare_call.cc.
#include "base/kernel.h"

extern "C" long larger_call(long number, long a, long b, long c, long d, long e, long f);

namespace coco::kernel {

long call(long number, long a, long b, long c, long d, long e, long f) {
    return larger_call(number, a, b, c, d, e, f);
}

}  // namespace coco::kernel
