// SPDX-License-Identifier: BSD-3-Clause
//
// The door of mlockall: it must not fill the shared heap, which is sparse.
#include "heap/lock_all.h"

extern "C" __attribute__((visibility("default"))) int mlockall(int flags) {
    return coco::heap::lock_all(flags);
}
