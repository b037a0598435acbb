// SPDX-License-Identifier: BSD-3-Clause
//
// The malloc door: every name of the family, forwarded to the heap, or as a whole to those whom it belongs
// to. Works before libc's constructors have run.
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include "heap/heap.h"
#include "heap/malloc_family.h"

namespace heap = coco::heap;

#define COCO_DOOR extern "C" __attribute__((visibility("default")))

namespace {

bool is_power_of_two(std::size_t n) { return n != 0 && (n & (n - 1)) == 0; }

// As in glibc, any alignment is allowed, and rounded up to a power of two.
void* aligned(std::size_t alignment, std::size_t bytes) {
    std::size_t power = sizeof(void*);
    while (power < alignment && power != 0) power *= 2;
    if (power != 0) return heap::allocate_aligned(power, bytes);
    errno = EINVAL;
    return nullptr;
}

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

COCO_DOOR void* malloc(std::size_t bytes) {
    if (heap::malloc_family_is_ours()) [[likely]]
        return heap::allocate(bytes, __builtin_return_address(0));
    return heap::others().malloc(bytes);
}

COCO_DOOR void* calloc(std::size_t count, std::size_t bytes_each) {
    if (heap::malloc_family_is_ours()) [[likely]]
        return heap::allocate_zeroed(count, bytes_each, __builtin_return_address(0));
    return heap::others().calloc(count, bytes_each);
}

COCO_DOOR void* realloc(void* block, std::size_t bytes) {
    return heap::malloc_family_is_ours() ? heap::reallocate(block, bytes)
                                         : heap::others().realloc(block, bytes);
}

COCO_DOOR void free(void* block) {
    if (heap::malloc_family_is_ours()) [[likely]]
        return heap::release(block);
    heap::others().free(block);
}

COCO_DOOR void* reallocarray(void* block, std::size_t count, std::size_t bytes_each) {
    if (!heap::malloc_family_is_ours()) return heap::others().reallocarray(block, count, bytes_each);
    std::size_t bytes = 0;
    if (!__builtin_mul_overflow(count, bytes_each, &bytes)) return heap::reallocate(block, bytes);
    errno = ENOMEM;
    return nullptr;
}

COCO_DOOR void* memalign(std::size_t alignment, std::size_t bytes) {
    return heap::malloc_family_is_ours() ? aligned(alignment, bytes)
                                         : heap::others().memalign(alignment, bytes);
}

COCO_DOOR void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    return heap::malloc_family_is_ours() ? aligned(alignment, bytes)
                                         : heap::others().aligned_alloc(alignment, bytes);
}

// Reports by value; errno stays.
COCO_DOOR int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
    if (!heap::malloc_family_is_ours()) return heap::others().posix_memalign(block, alignment, bytes);
    if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
    int saved = errno;
    void* made = heap::allocate_aligned(alignment, bytes);
    errno = saved;
    if (made == nullptr) return ENOMEM;
    *block = made;
    return 0;
}

COCO_DOOR void* valloc(std::size_t bytes) {
    return heap::malloc_family_is_ours() ? heap::allocate_aligned(page_bytes(), bytes)
                                         : heap::others().valloc(bytes);
}

COCO_DOOR void* pvalloc(std::size_t bytes) {
    if (!heap::malloc_family_is_ours()) return heap::others().pvalloc(bytes);
    std::size_t page = page_bytes();
    std::size_t whole = 0;
    if (!__builtin_add_overflow(bytes, page - 1, &whole))
        return heap::allocate_aligned(page, whole & ~(page - 1));
    errno = ENOMEM;
    return nullptr;
}

COCO_DOOR std::size_t malloc_usable_size(void* block) {
    return heap::malloc_family_is_ours() ? heap::usable_bytes(block)
                                         : heap::others().malloc_usable_size(block);
}

// C23, which the C library may not know yet.
COCO_DOOR void free_sized(void* block, std::size_t bytes) {
    if (heap::malloc_family_is_ours()) return heap::release(block);
    heap::others().free_sized != nullptr ? heap::others().free_sized(block, bytes) : std::free(block);
}

COCO_DOOR void free_aligned_sized(void* block, std::size_t alignment, std::size_t bytes) {
    if (heap::malloc_family_is_ours()) return heap::release(block);
    auto* next = heap::others().free_aligned_sized;
    next != nullptr ? next(block, alignment, bytes) : std::free(block);
}
