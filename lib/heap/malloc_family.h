// SPDX-License-Identifier: BSD-3-Clause
//
// Who serves the malloc family: libcoco all of it or nothing, as a block that one malloc made must not meet
// the realloc or free of another. This is decided once, by the first call of any door, which may come from
// the dynamic linker before any constructor. The family is ours if
// - this process shares memory: it is an MPI rank, libcoco is on, no tool shadows its memory;
// - malloc, free, calloc and realloc of the whole process are our doors, not a program's or a sanitizer's;
// - the next malloc after ours is the C library's: a program that is linked with another allocator also calls
//   names that only that one has, and frees what they return.
// Otherwise each door hands on to the next definition of its name, as if libcoco were not there.
// MPI_Alloc_mem and libcoco's own memory come from this room's heap in all cases. A sanitizer's runtime must
// come before libcoco: an ASan that comes later refuses to start and says so, TSan crashes in its own
// start-up.
//
// Called by the doors, and before the segment is made (own_segment.h). Thread safety: any thread; while one
// decides, others wait. Fails: no.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>

struct mallinfo;
struct mallinfo2;

namespace coco::heap {

extern constinit std::atomic<bool> g_malloc_family_is_ours;  // false as long as it is undecided
bool decide_malloc_family();
inline bool malloc_family_is_ours() {
    return g_malloc_family_is_ours.load(std::memory_order_relaxed) || decide_malloc_family();
}

// Whether this thread is in the midst of deciding: memory that it asks for now is for dlsym, or another
// library's wrapper.
bool is_deciding_malloc_family();

// Blocks for code that allocates while it is being decided, as dlsym does, and the wrappers of other
// preloaded libraries, or while the segment is made. They come from a small static buffer, read as zeros and
// are never given back.
inline constexpr std::size_t kEarlyBytes = 32 << 10;
extern constinit std::byte g_early[kEarlyBytes];
inline bool is_early(const void* block) {
    return reinterpret_cast<std::uintptr_t>(block) - reinterpret_cast<std::uintptr_t>(g_early) < kEarlyBytes;
}
std::size_t early_bytes(const void* block);  // Requires: is_early(block)

// The next definitions after ours; null where there is none. During the decision only malloc, calloc, realloc
// and free are there.
struct Family {
    void* (*malloc)(std::size_t bytes);
    void* (*calloc)(std::size_t count, std::size_t bytes_each);
    void* (*realloc)(void* block, std::size_t bytes);
    void (*free)(void* block);
    void* (*reallocarray)(void* block, std::size_t count, std::size_t bytes_each);
    void* (*memalign)(std::size_t alignment, std::size_t bytes);
    void* (*aligned_alloc)(std::size_t alignment, std::size_t bytes);
    int (*posix_memalign)(void** block, std::size_t alignment, std::size_t bytes);
    void* (*valloc)(std::size_t bytes);
    void* (*pvalloc)(std::size_t bytes);
    std::size_t (*malloc_usable_size)(void* block);
    void (*free_sized)(void* block, std::size_t bytes);
    void (*free_aligned_sized)(void* block, std::size_t alignment, std::size_t bytes);
    struct mallinfo (*mallinfo)();
    struct mallinfo2 (*mallinfo2)();
    void (*malloc_stats)();
    int (*malloc_info)(int options, std::FILE* file);
    int (*malloc_trim)(std::size_t pad_bytes);
    int (*mallopt)(int parameter, int value);
};
// Requires: malloc_family_is_ours() has returned false.
const Family& others();

// The next definition of a name after ours; null if there is none. Loses no message of dlerror.
void* next_definition(const char* name);

}  // namespace coco::heap
