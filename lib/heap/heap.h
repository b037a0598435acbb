// SPDX-License-Identifier: BSD-3-Clause
//
// Memory on this rank's segment: the allocator behind the malloc door, and libcoco's own way to get shared
// memory. The allocator is jemalloc; what it would ask of the system (mmap, munmap, madvise, pthread_atfork)
// it asks of this room, so its very first page is on the segment. Past COCO_HEAP_LIMIT, or when the system
// has no more, allocation goes on in private memory: ask is_shared when it matters. Thread safety: any
// thread. Fails: null and errno ENOMEM, as malloc does; releasing keeps errno.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coco::heap {

// A block of so many bytes or more is none of those that libc has in private memory.
inline constexpr std::size_t kSurelyShared = 1024;
// caller: the code that asks, where known. Blocks to which libc itself writes in a forked child must be
// private memory.
void* allocate(std::size_t bytes, const void* caller = nullptr);
void* allocate_zeroed(std::size_t count, std::size_t bytes_each, const void* caller = nullptr);
void* allocate_aligned(std::size_t alignment, std::size_t bytes);  // Requires: alignment is a power of two
// The same, and shared from birth if any memory is.
void* allocate_shared(std::size_t alignment, std::size_t bytes);
void* reallocate(void* block, std::size_t bytes);  // 0 bytes releases the block and returns null
void release(void* block);                         // null is allowed
std::size_t usable_bytes(const void* block);

// Gives back freed memory that was kept for longer than is of use; looks at a clock now and then. For the
// library, in its calls and while it waits.
void tend();

// Gives back what the allocator's arenas keep of freed memory.
void purge();

// Gives back all freed memory that the allocator keeps, but for what other threads' caches hold.
// Returns: whether there was any.
bool trim();

// The MPI function that this thread is in the midst of while other ranks wait for it; null: none. No
// exception may leave it then, half done, for a program to catch and go on: operator new ends the job
// instead. Set by dispatch.
extern constinit thread_local const char* t_undivided;
// Says that there is no memory for that function, in one line, and aborts.
[[noreturn]] void stop_undivided(std::size_t bytes);

// How much memory the allocator has from the system, and how much of that the program has.
struct AllocatorFigures {
    std::uint64_t mapped_bytes;
    std::uint64_t allocated_bytes;
    std::uint64_t freed_bytes;  // not given back yet
};
AllocatorFigures allocator_figures();

}  // namespace coco::heap
