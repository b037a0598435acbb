// SPDX-License-Identifier: BSD-3-Clause
#include "heap/view.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>

#include "base/bits.h"
#include "base/check.h"
#include "base/kept_errno.h"
#include "base/kernel.h"
#include "os/cpu.h"
#include "os/process.h"
#include "os/shared_memory.h"

// Where the thread sanitizer runs, which has no shadow for addresses that the kernel does not choose.
extern "C" __attribute__((weak)) void __tsan_init();

namespace coco::heap {
namespace {

constexpr std::uint64_t kFirstBytes = os::kHugePageBytes;

std::byte* map_nothing(std::uint64_t at, std::uint64_t bytes) {
    void* mapped =
        kernel::mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapped != MAP_FAILED ? static_cast<std::byte*>(mapped) : nullptr;
}

// Whether nothing is mapped there. Under a limit that would not let all of it be mapped, its begin speaks for
// it.
bool is_free(std::uint64_t at, std::uint64_t bytes) {
    for (const std::uint64_t tried : {bytes, os::page_bytes()}) {
        std::byte* mapped = map_nothing(at, tried);
        if (mapped == nullptr) continue;
        kernel::munmap(mapped, tried);
        return mapped == reinterpret_cast<std::byte*>(at);
    }
    return false;
}

// Views lie one behind the other from an eighth of the address space on, at a distance that is drawn: above
// what programs, the C library and the sanitizers for addresses map low, and far below where the kernel maps
// downwards.
std::uint64_t first_place() {
    const char on_stack = 0;
    const std::uint64_t top = std::bit_ceil(reinterpret_cast<std::uint64_t>(&on_stack));
    constexpr std::uint64_t kPlaces = 1 << 16;
    return top / 8 +
           top / 64 / kPlaces * (os::random_cookie() % kPlaces) / os::kHugePageBytes * os::kHugePageBytes;
}

// Room for a view, of which nothing is mapped yet; 0: none was found.
std::uint64_t find_place(std::uint64_t bytes) {
    static constinit std::atomic<std::uint64_t> next{0};  // relaxed: it only deals out addresses
    std::uint64_t first = 0;
    if (next.load(std::memory_order_relaxed) == 0)
        next.compare_exchange_strong(first, first_place(), std::memory_order_relaxed);
    constexpr std::uint64_t kApart = std::uint64_t{1} << 30;
    constexpr int kTries = 256;
    for (int i = 0; i < kTries && &__tsan_init == nullptr; ++i) {
        const std::uint64_t at =
            next.fetch_add(base::round_up(bytes, kApart) + kApart, std::memory_order_relaxed);
        if (is_free(at, bytes)) return at;
    }
    return 0;
}

}  // namespace

std::byte* reserve(std::uint64_t bytes, std::uint64_t alignment) {
    COCO_CHECK(bytes != 0 && std::has_single_bit(alignment), "addresses are reserved at a power of two");
    std::byte* mapped = map_nothing(0, bytes + alignment);
    if (mapped == nullptr) return nullptr;
    const auto first = reinterpret_cast<std::uint64_t>(mapped);
    const std::uint64_t skipped = base::round_up(first, alignment) - first;
    if (skipped != 0) kernel::munmap(mapped, skipped);
    kernel::munmap(mapped + skipped + bytes, alignment - skipped);
    return mapped + skipped;
}

bool View::open(int fd, const Areas& areas, In in) {
    COCO_CHECK(base_ == nullptr && fd >= 0, "a view is closed before it is opened");
    areas_ = areas;
    in_ = in;
    std::copy_n(areas.begin, kAreas, mapped_to_);
    const std::uint64_t place = find_place(areas.bytes());
    base_ = place != 0 ? reinterpret_cast<std::byte*>(place) : reserve(areas.bytes(), os::kHugePageBytes);
    if (base_ == nullptr) return false;
    for (int i = 0; i < kAreas; ++i) {
        const auto area = static_cast<Area>(i);
        // In the kernel's own place nothing else can be mapped, and so all of it is mapped at once.
        const std::uint64_t bytes =
            place != 0 ? std::min(kFirstBytes, areas.bytes_of(area)) : areas.bytes_of(area);
        if (place == 0) kernel::munmap(base_ + areas.begin[area], bytes);
        if (bytes == 0 || map(area, areas.begin[area] + bytes, fd)) continue;
        const base::KeptErrno kept;
        close();
        return false;
    }
    return true;
}

bool View::extend(Area area, std::uint64_t end, int fd) {
    COCO_CHECK(base_ != nullptr, "a view that is extended is open");
    COCO_CHECK(end <= areas_.begin[area + 1], "no area of a segment is mapped beyond its end");
    if (end <= mapped_to_[area]) return true;
    if (fd >= 0) return map(area, end, fd);
    // The mapping's last page, with what is behind it.
    const std::uint64_t page = os::page_bytes();
    std::byte* last = base_ + mapped_to_[area] - page;
    if (kernel::mremap(last, page, page + (end - mapped_to_[area]), 0, nullptr) != last) return false;
    mapped_to_[area] = end;
    return true;
}

bool View::map(Area area, std::uint64_t end, int fd) {
    COCO_CHECK(end > mapped_to_[area], "an area is mapped farther than before");
    std::byte* at = base_ + mapped_to_[area];
    const std::uint64_t bytes = end - mapped_to_[area];
    // Access comes last: under mlockall(MCL_FUTURE) the kernel would fill all of it at once.
    void* mapped = kernel::mmap(at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, fd,
                                mapped_to_[area]);
    if (mapped == MAP_FAILED) return false;
    kernel::munlock(mapped, bytes);
    // A kernel that does not know MAP_FIXED_NOREPLACE may have chosen another place.
    if (mapped != at || kernel::mprotect(mapped, bytes, PROT_READ | PROT_WRITE) != 0) {
        kernel::munmap(mapped, bytes);
        errno = ENOMEM;
        return false;
    }
    kernel::madvise(at, bytes, MADV_DONTDUMP);
    if (in_ == In::others) kernel::madvise(at, bytes, MADV_DONTFORK);
    kernel::madvise(at, bytes, MADV_HUGEPAGE);
    mapped_to_[area] = end;
    return true;
}

void View::close() {
    for (int area = 0; area < kAreas; ++area)
        if (mapped_to_[area] != areas_.begin[area])
            kernel::munmap(base_ + areas_.begin[area], mapped_to_[area] - areas_.begin[area]);
    base_ = nullptr;
}

}  // namespace coco::heap
