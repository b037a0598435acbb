// SPDX-License-Identifier: BSD-3-Clause
#include "heap/large.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "heap/lock_all.h"
#include "heap/own_segment.h"
#include "heap/private_jemalloc.h"
#include "heap/process_facts.h"
#include "os/cpu.h"
#include "os/shared_memory.h"

namespace coco::heap {
namespace {

bool is_large(std::size_t bytes) { return bytes >= kLarge; }

// Of a process that never had a segment blocks come from jemalloc's own arenas.
int flags_for(Arena which) { return carvable().bytes != 0 ? arena_flags(which) : 0; }

// Address space for a large block that grows. It is charged while the block is moved there.
std::size_t room_to_grow(std::size_t bytes) {
    // The kernel would fill all of the room at once where the program locks what it maps.
    if (is_address_space_bounded() || locks_later_pages() || is_on_segment(arena_of(bytes))) return bytes;
    return std::max<std::size_t>(bytes, memory_share_bytes() / 4);
}

// A block with room behind it; null: there is none.
void* allocate_with_room(std::size_t bytes) {
    const std::size_t room = room_to_grow(bytes);
    void* block = allocate_in(arena_of(room), room, 0, false);
    if (block == nullptr || coco_je_xallocx(block, bytes, 0, 0) >= bytes) return block;
    coco_je_free(block);
    return nullptr;
}

}  // namespace

void* allocate_in(Arena which, std::size_t bytes, std::size_t alignment, bool zeroed) {
    COCO_CHECK_DEAR(bytes >= kMiddle || which == Arena::libc, "small blocks are the allocator's own affair");
    COCO_CHECK_DEAR(alignment == 0 || std::has_single_bit(alignment), "an alignment is a power of two");
    const std::size_t least = is_large(bytes)    ? os::kHugePageBytes
                              : bytes >= kMiddle ? os::page_bytes()
                                                 : alignof(std::max_align_t);
    return coco_je_mallocx(bytes, flags_for(which) | (zeroed ? MALLOCX_ZERO : 0) |
                                      static_cast<int>(MALLOCX_ALIGN(std::max(alignment, least))));
}

void* reallocate_large(void* block, std::size_t bytes) {
    COCO_CHECK_DEAR(bytes >= kMiddle, "small blocks are the allocator's own affair");
    const Arena which = arena_of(bytes);
    if (block == nullptr) return allocate_in(which, bytes, 0, false);
    const std::size_t usable = coco_je_malloc_usable_size(block);
    if (usable >= bytes) return coco_je_rallocx(block, bytes, flags_for(which));
    const bool stays = usable >= kMiddle && is_large(usable) == is_large(bytes);
    if (stays && coco_je_xallocx(block, bytes, 0, 0) >= bytes) return block;
    void* moved = is_large(bytes) ? allocate_with_room(bytes) : nullptr;
    if (moved == nullptr) moved = allocate_in(which, bytes, 0, false);
    if (moved == nullptr) return nullptr;
    std::memcpy(moved, block, usable);
    coco_je_free(block);
    return moved;
}

}  // namespace coco::heap
