// SPDX-License-Identifier: BSD-3-Clause
// The C API, see coco/coco.h.
#include "coco/coco.h"

#include "heap/outside.h"
#include "heap/segment.h"

#define COCO_API extern "C" __attribute__((visibility("default")))

COCO_API const char* coco_version(void) { return COCO_VERSION; }

COCO_API int coco_is_shared(const void* address) {
    return coco::heap::is_shared(address) || coco::heap::is_adopted_outside(address) ? 1 : 0;
}
