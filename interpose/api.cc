// SPDX-License-Identifier: BSD-3-Clause
// The C API, see coco/coco.h.
#include "coco/coco.h"

#include "dispatch/instead.h"
#include "heap/segment.h"
#include "mpi/library.h"

#define COCO_API extern "C" __attribute__((visibility("default")))

COCO_API const char* coco_version(void) { return COCO_VERSION; }

COCO_API int coco_is_shared(const void* address) { return coco::heap::is_shared(address) ? 1 : 0; }

// What follows is not in coco.h, as no program shall rely on it: it is for `coco tune` and for benchmarks
// that compare algorithms in one process, and stays as long as they need it. See dispatch/instead.h; `comm`
// is the address of the MPI library's handle.

// Returns: 0; 1: nothing was changed, because a word is unknown or the communicator has not been set up.
COCO_API int coco_choose(const void* comm, const char* collective, const char* choice) {
    const bool is_done = comm != nullptr && collective != nullptr && coco::mpi::served() != nullptr &&
                         coco::dispatch::choose_instead(coco::mpi::load<coco::mpi::Comm>(comm), collective,
                                                        choice != nullptr ? choice : "");
    return is_done ? 0 : 1;
}

// Makes this process forget what it has learned.
COCO_API void coco_forget(void) { coco::dispatch::forget_what_was_learned(); }

// Puts the facts of a communicator by which rules choose into `facts`: nodes, ranks of a node, domains, the
// degree, which is -1 while no neighbours are known, and 1 where ranks outnumber CPUs, else 0. Returns: 0; 1:
// the communicator has not been set up.
COCO_API int coco_facts(const void* comm, std::int64_t* facts) {
    coco::policy::Facts found{};
    if (comm == nullptr || facts == nullptr || coco::mpi::served() == nullptr ||
        !coco::dispatch::facts_of(coco::mpi::load<coco::mpi::Comm>(comm), found))
        return 1;
    facts[0] = found.nodes;
    facts[1] = found.ranks_per_node;
    facts[2] = found.domains;
    facts[3] = found.degree ? static_cast<std::int64_t>(*found.degree) : -1;
    facts[4] = found.crowded ? 1 : 0;
    return 0;
}
