// SPDX-License-Identifier: BSD-3-Clause
//
// Facts of this process that the heap depends on, from the environment, the launcher and the system.
// Called by this room, below malloc, by comm, by dispatch in MPI_Init, and by the command. Thread safety: any
// thread. Never fails.
#pragma once
#include <cstdint>
#include <optional>

#include "base/heap_mode.h"

namespace coco::heap {

// Whether this process is to have a shared heap, as its environment and its launcher say.
bool wants_shared_heap();
// COCO_HEAP and COCO_HEAP_LIMIT. A wrong value counts as unset here; MPI_Init refuses it.
base::HeapMode mode();
std::optional<std::uint64_t> heap_limit();
// How large the heap of a rank shall be, by that limit, the memory, the ranks of the node and what limits
// this process; 0: there is room for none.
std::uint64_t wanted_heap_bytes();
// The node's memory; 0: the system does not tell.
std::uint64_t node_memory_bytes();
// This rank's share of it, or of what its control group grants, once that is known.
std::uint64_t memory_share_bytes();
void bound_memory(std::uint64_t node_bytes);
// A limit of this process (RLIMIT_AS, ...) as it is now; UINT64_MAX: there is none.
std::uint64_t limit_of(int resource);
// Whether RLIMIT_AS counts addresses.
bool is_address_space_bounded();

}  // namespace coco::heap
