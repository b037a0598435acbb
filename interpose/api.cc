// SPDX-License-Identifier: BSD-3-Clause
// The C API, see coco/coco.h.
#include "coco/coco.h"

#include "dispatch/instead.h"
#include "heap/outside.h"
#include "heap/segment.h"
#include "mpi/library.h"

#define COCO_API extern "C" __attribute__((visibility("default")))

COCO_API const char* coco_version(void) { return COCO_VERSION; }

COCO_API int coco_is_shared(const void* address) {
    return coco::heap::is_shared(address) || coco::heap::is_adopted_outside(address) ? 1 : 0;
}

// Not in coco.h, as no program shall rely on it: it is for `coco tune` and for benchmarks that compare algorithms in one process,
// and stays as long as they need it. See dispatch/instead.h; `comm` is the address of the MPI library's handle.
// Returns: 0; 1: nothing was changed, because a word is unknown or the communicator has not been set up.
COCO_API int coco_choose(const void* comm, const char* collective, const char* choice) {
    const bool is_done = comm != nullptr && collective != nullptr && coco::mpi::served() != nullptr &&
                         coco::dispatch::choose_instead(coco::mpi::load<coco::mpi::Comm>(comm), collective,
                                                        choice != nullptr ? choice : "");
    return is_done ? 0 : 1;
}
