// SPDX-License-Identifier: BSD-3-Clause
#include "heap/arenas.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <string_view>

#include "base/check.h"
#include "base/kept_errno.h"
#include "base/kernel.h"
#include "base/text.h"
#include "heap/gone.h"
#include "heap/lock_all.h"
#include "heap/overlays.h"
#include "heap/own_segment.h"
#include "heap/parts.h"
#include "heap/private_jemalloc.h"
#include "heap/process_facts.h"
#include "heap/segment.h"
#include "heap/system.h"
#include "heap/view.h"
#include "os/cpu.h"
#include "os/shared_memory.h"

namespace coco::heap {

constinit base::Lock g_arenas_lock;

namespace {

constexpr int kArenas = 4;
constexpr int kOpen = PROT_READ | PROT_WRITE;

// Relaxed: bounds that may be passed by as much as threads allocate at once.
constinit std::atomic<std::uint64_t> g_middle_bytes{0};   // address space of the middle arena on the segment
constinit std::atomic<std::uint64_t> g_private_bytes{0};  // private pages in use

std::byte* at(void* address, std::size_t offset = 0) { return static_cast<std::byte*>(address) + offset; }

// Under mlockall(MCL_FUTURE) mere addresses would count as locked.
void leave_unlocked(std::byte* begin, std::size_t bytes) {
    if (locks_later_pages()) kernel::munlock(begin, bytes);
}

bool map_nothing(std::byte* begin, std::size_t bytes) {
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (kernel::mmap(begin, bytes, PROT_NONE, kFlags, -1, 0) != begin) return false;
    leave_unlocked(begin, bytes);
    return true;
}

// As the program has asked for all that comes later.
bool lock_touched(std::byte* begin, std::size_t bytes) {
    constexpr long kOnFault = 1;  // MLOCK_ONFAULT
    return kernel::call(SYS_mlock2, reinterpret_cast<long>(begin), static_cast<long>(bytes), kOnFault) == 0;
}

// Private pages where none are used, which read as zeros. Huge ones are asked for while all together fit into
// half of the share: a program that leaves holes in its memory would fill it otherwise.
bool begin_private(std::byte* begin, std::size_t bytes) {
    // Refused, where the machine has no more memory, it leaves the addresses as they are.
    if (kernel::mprotect(begin, bytes, kOpen) != 0) return false;
    if (locks_later_pages() && !lock_touched(begin, bytes)) {
        map_nothing(begin, bytes);
        return false;
    }
    const std::uint64_t before = g_private_bytes.fetch_add(bytes, std::memory_order_relaxed);
    if (bytes >= os::kHugePageBytes && before + bytes <= memory_share_bytes() / 2)
        kernel::madvise(begin, bytes, MADV_HUGEPAGE);
    return true;
}

// Pages go, addresses stay.
bool end_private(std::byte* begin, std::size_t bytes) {
    if (!map_nothing(begin, bytes)) return false;
    note_gone(begin, bytes);
    g_private_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    return true;
}

// Whether the machine has that much: what it refuses must take no addresses.
bool is_granted(std::size_t bytes) {
    if (locks_later_pages()) return true;  // the kernel would fill it to find out
    void* mapped = kernel::mmap(nullptr, bytes, kOpen, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return false;
    kernel::munmap(mapped, bytes);
    return true;
}

// Null where there is none. Unused is what begins to be used by commit().
std::byte* take_private(std::size_t bytes, std::size_t alignment, bool used) {
    // Where addresses are few, or it is much, jemalloc gets what a block needs, and no more to grow into.
    const bool is_exact = is_address_space_bounded() || bytes > memory_share_bytes() / 8;
    if (!used && (is_exact || !is_granted(bytes))) return nullptr;
    std::byte* begin = reserve(bytes, alignment);
    if (begin == nullptr) return nullptr;
    leave_unlocked(begin, bytes);
    if (used && !begin_private(begin, bytes)) {
        kernel::munmap(begin, bytes);
        return nullptr;
    }
    watch_private(begin, bytes);
    return begin;
}

// A span of the segment; null: the arena gets private memory.
std::byte* carve_for(Arena which, std::size_t bytes, std::size_t alignment) {
    if (!is_on_segment(which)) return nullptr;
    if (which != Arena::middle || mode() == base::HeapMode::shared) return carve(bytes, alignment);
    // A program that leaves holes in its memory shall not be filled up by huge pages.
    if (g_middle_bytes.load(std::memory_order_relaxed) + bytes > memory_share_bytes() / 8) return nullptr;
    std::byte* begin = carve(bytes, alignment);
    if (begin != nullptr) g_middle_bytes.fetch_add(bytes, std::memory_order_relaxed);
    return begin;
}

Arena arena_with(const extent_hooks_t* hooks);

// jemalloc knows what it has of the address space: it never asks for a certain address in vain. Its own
// records begin to be used at once, blocks by commit().
void* alloc(extent_hooks_t* hooks, void* wanted, std::size_t bytes, std::size_t alignment, bool* zero,
            bool* commit, unsigned) {
    const base::KeptErrno kept;
    if (wanted != nullptr) return nullptr;
    std::byte* begin = carve_for(arena_with(hooks), bytes, alignment);
    if (begin != nullptr && *commit) begin_use(begin, bytes, Pages::records);
    if (begin == nullptr) begin = take_private(bytes, alignment, *commit);
    if (begin != nullptr) *zero = true;
    return begin;
}

// What is long may be sparse, where the program has not asked for it to be shared.
Pages pages_for(std::size_t bytes) {
    const std::size_t most = kLarge + span_unit();  // jemalloc adds a page
    return bytes < most || mode() == base::HeapMode::shared ? Pages::huge : Pages::as_touched;
}

// Returns, as all of these do: whether it failed.
bool commit(extent_hooks_t*, void* address, std::size_t, std::size_t offset, std::size_t bytes, unsigned) {
    const base::KeptErrno kept;
    std::byte* begin = at(address, offset);
    if (!is_carvable(begin)) return !begin_private(begin, bytes);
    begin_use(begin, bytes, pages_for(bytes));
    return false;
}

bool decommit(extent_hooks_t* hooks, void* address, std::size_t, std::size_t offset, std::size_t bytes,
              unsigned) {
    const base::KeptErrno kept;
    std::byte* begin = at(address, offset);
    if (is_carvable(begin)) return !end_use(begin, bytes);
    // Each hole may be a mapping more, of which the kernel gives a process 65,530: small ones are purged.
    const bool is_hole = bytes < os::kHugePageBytes && arena_with(hooks) != Arena::large;
    return is_hole || !end_private(begin, bytes);
}

bool purge(extent_hooks_t*, void* address, std::size_t, std::size_t offset, std::size_t bytes, unsigned) {
    const base::KeptErrno kept;
    return give_up_pages(at(address, offset), bytes) != 0;
}

// Addresses are given back where the program has few of them.
bool dalloc(extent_hooks_t*, void* address, std::size_t bytes, bool committed, unsigned) {
    const base::KeptErrno kept;
    if (is_carvable(address) || !is_address_space_bounded()) return true;
    note_gone(address, bytes);
    if (kernel::munmap(address, bytes) != 0) return true;
    if (committed) g_private_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
}

bool split(extent_hooks_t*, void*, std::size_t, std::size_t, std::size_t, bool, unsigned) { return false; }
bool merge(extent_hooks_t*, void*, std::size_t, void*, std::size_t, bool, unsigned) { return false; }

constexpr extent_hooks_t kHooks = {alloc, dalloc, nullptr, commit, decommit, nullptr, purge, split, merge};
// Equal, but for their addresses, which tell the arenas.
constinit extent_hooks_t g_hooks[kArenas] = {kHooks, kHooks, kHooks, kHooks};

Arena arena_with(const extent_hooks_t* hooks) { return static_cast<Arena>(hooks - g_hooks); }

void set(unsigned arena, std::string_view setting, std::int64_t value) {
    base::Text name;
    name << "arena." << arena << '.' << setting << '\0';
    coco_je_mallctl(name.view().data(), nullptr, nullptr, &value, sizeof value);
}

unsigned make_arena(Arena which) {
    const base::KeptErrno kept;
    extent_hooks_t* hooks = &g_hooks[static_cast<int>(which)];
    unsigned made = 0;
    std::size_t bytes = sizeof made;
    if (coco_je_mallctl("arenas.create", &made, &bytes, &hooks, sizeof(void*)) != 0) made = 0;
    if (made != 0 && which == Arena::large) set(made, "dirty_decay_ms", 0);
    if (made != 0 && which == Arena::libc) set(made, "dirty_decay_ms", -1);  // never: it is little
    // Free neighbours of together so many bytes go back at once.
    if (made != 0 && which == Arena::middle) set(made, "oversize_threshold", 256 << 20);
    return made;
}

constinit std::atomic<bool> g_shares_large{false};  // relaxed: nothing else goes with it

}  // namespace

void share_large_blocks(bool share) { g_shares_large.store(share, std::memory_order_relaxed); }

Arena arena_of(std::size_t bytes) {
    COCO_CHECK_DEAR(bytes >= kMiddle, "small blocks are in no arena of their own");
    if (bytes < kLarge) return Arena::middle;
    const bool is_shared = g_shares_large.load(std::memory_order_relaxed) && is_on_segment(Arena::middle);
    return is_shared ? Arena::middle : Arena::large;
}

bool is_on_segment(Arena which) {
    if (which == Arena::libc || own().bytes == 0) return false;
    if (which == Arena::shared || mode() == base::HeapMode::shared) return true;
    return which == Arena::middle && can_make_huge();
}

namespace {

// jemalloc's flags for a block of an arena, which is made when it is first asked for; 0: it cannot be made.
int arena_flags(Arena which) {
    COCO_CHECK_DEAR(static_cast<int>(which) < kArenas, "an arena is one of those that there are");
    // In a process that never had a segment blocks come from jemalloc's own arenas.
    if (carvable().bytes == 0) return 0;
    // Their numbers; 0: not made yet. Relaxed: jemalloc itself orders what it reads of an arena.
    static constinit std::atomic<unsigned> numbers[kArenas] = {};
    std::atomic<unsigned>& number = numbers[static_cast<int>(which)];
    unsigned arena = number.load(std::memory_order_relaxed);
    if (arena == 0) {
        const std::scoped_lock hold(g_arenas_lock);
        arena = number.load(std::memory_order_relaxed);
        if (arena == 0) number.store(arena = make_arena(which), std::memory_order_relaxed);
    }
    return arena == 0 ? 0 : static_cast<int>(MALLOCX_ARENA(arena)) | MALLOCX_TCACHE_NONE;
}

bool is_large(std::size_t bytes) { return bytes >= kLarge; }

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
    return coco_je_mallocx(bytes, arena_flags(which) | (zeroed ? MALLOCX_ZERO : 0) |
                                      static_cast<int>(MALLOCX_ALIGN(std::max(alignment, least))));
}

void* reallocate_large(void* block, std::size_t bytes) {
    COCO_CHECK_DEAR(bytes >= kMiddle, "small blocks are the allocator's own affair");
    const Arena which = arena_of(bytes);
    if (block == nullptr) return allocate_in(which, bytes, 0, false);
    const std::size_t usable = coco_je_malloc_usable_size(block);
    if (usable >= bytes) return coco_je_rallocx(block, bytes, arena_flags(which));
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
