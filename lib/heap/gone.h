// SPDX-License-Identifier: BSD-3-Clause
//
// Pages of the heap that are gone: given back, or replaced by others. MPI libraries remember memory that they
// have registered with a network, and forget it when they see a call of libc's that unmaps it. The heap's own
// calls go to the kernel directly (base/kernel.h), so gone ranges are noted here, and announced once no lock
// of the allocator is held: before anybody gets memory that may lie there.
//
// Noted by all that changes the heap's pages; announced by the allocator's functions. Thread safety: any
// thread; around a fork the list is locked. No malloc, but the libraries that hear an announcement may.
// Fails: no; of more ranges than fit, one is made that has them all.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/lock.h"

namespace coco::heap {

// Notes a range of whole pages. Any lock may be held.
void note_gone(const void* address, std::uint64_t bytes);

extern constinit std::atomic<bool> g_any_gone;
void announce_all_gone();
// Announces what has been noted; a relaxed load where there is nothing. Requires: no lock of the allocator is
// held. Whoever gets memory by an allocator's lock sees all that was noted under it before.
inline void announce_gone() {
    if (g_any_gone.load(std::memory_order_relaxed)) [[unlikely]]
        announce_all_gone();
}

extern constinit base::Lock g_gone_lock;  // fork.cc holds it around a fork

}  // namespace coco::heap
