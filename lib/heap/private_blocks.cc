// SPDX-License-Identifier: BSD-3-Clause
#include "heap/private_blocks.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/bits.h"
#include "base/env.h"
#include "base/kernel.h"
#include "base/lock.h"
#include "heap/gone.h"
#include "heap/held.h"
#include "heap/outside.h"
#include "heap/overlays.h"
#include "heap/own_segment.h"
#include "heap/pages.h"
#include "heap/segment.h"
#include "os/cpu.h"
#include "os/numa.h"
#include "os/own_mappings.h"
#include "os/pinned.h"
#include "os/shared_memory.h"

namespace coco::heap {
namespace {

// As much is copied and mapped at once, so that no adoption needs twice the memory of what it adopts.
constexpr std::uint64_t kPieceBytes = 4u << 20;
// Each adopted run may cost two mappings, of which the kernel gives a process 65,530 by default.
constexpr int kAdoptedRunsMax = 16 * 1024;

bool is_strict_overcommit() {
    char text[4] = {};
    int fd = kernel::open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = kernel::read(fd, text, sizeof text - 1);
    kernel::close(fd);
    return n > 0 && text[0] == '2';
}

bool is_data_bounded() {
    rlimit data{};
    return kernel::getrlimit(RLIMIT_DATA, &data) != 0 || data.rlim_cur != RLIM_INFINITY;
}

// The segment mapped a second time, up to an offset of the heap: by it the pages behind private ones are written. Null where
// that cannot be.
std::byte* second_view(std::uint64_t end) {
    static constinit View view;
    static constinit std::atomic<std::uint64_t> mapped_to{0};  // release: its base is seen, too
    static constinit base::Lock making;
    if (end < mapped_to.load(std::memory_order_acquire)) return view.base();
    const std::scoped_lock hold(making);
    if (!is_own_descriptor(own().fd) ||
        (view.base() == nullptr && !view.open(own().fd, own_areas(), View::In::others)) ||
        !view.extend(kHeap, std::max(view.mapped_to(kHeap), base::round_up(end, os::kHugePageBytes)),
                     own().fd))
        return nullptr;
    mapped_to.store(view.mapped_to(kHeap) + 1, std::memory_order_release);
    return view.base();
}

std::uint64_t end_offset(const void* at, std::uint64_t bytes) { return offset_of(at) + bytes; }

// Whether the kernel has nothing but anonymous private memory there that may be read and written, so that nothing of the
// program's that was mapped behind our back is taken for ours. Requires: bytes != 0.
bool is_anonymous(std::byte* begin, std::byte* end) {
    auto is_plain = [](const os::Mapping& mapping) {
        return !mapping.shared && mapping.inode == 0 &&
               (mapping.protection & (PROT_READ | PROT_WRITE)) == (PROT_READ | PROT_WRITE);
    };
    auto from = reinterpret_cast<std::uint64_t>(begin), stop = reinterpret_cast<std::uint64_t>(end);
    os::MappingsFrom mappings(from);
    for (os::Mapping mapping; from < stop; from = mapping.end)
        if (mappings.next(mapping) != os::Told::mapping || mapping.begin > from || !is_plain(mapping))
            return false;
    return true;
}

constinit std::atomic<bool> g_any_shadow{
    false};  // relaxed: the thread that frees a block knows of its shadows

// Whether one mapping covers a range, as far as the kernel tells: kernels before 6.17 unmap the target of an mremap
// before they refuse a source of several.
bool is_one_mapping(const std::byte* begin, const std::byte* end) {
    os::Mapping mapping;
    return os::mapping_at(reinterpret_cast<std::uint64_t>(begin), mapping) == os::Told::mapping &&
           mapping.end >= reinterpret_cast<std::uint64_t>(end);
}

int count_mappings() {
    os::MappingsFrom mappings(0);
    int count = 0;
    for (os::Mapping any; mappings.next(any) == os::Told::mapping;) ++count;
    return count;
}

// How many runs may still be adopted. What has become private again since is found when all are spent, by the process's
// mappings, and seldom, as that takes some 10 ms then. Requires: one thread at a time.
class RunsLeft {
  public:
    bool is_any() {
        constexpr std::uint32_t kRefusalsPerCount = 1024;
        if (left_ == 0 && ++refusals_ % kRefusalsPerCount == 0)
            left_ = std::max(0, kAdoptedRunsMax - count_mappings() / 2);
        return left_ != 0;
    }
    void take() { --left_; }

  private:
    int left_ = kAdoptedRunsMax;
    std::uint32_t refusals_ = 0;
};

bool adopt_piece(std::byte* begin, std::uint64_t bytes, std::byte* view) {
    g_any_shadow.store(true, std::memory_order_relaxed);
    static_cast<void>(os::prefer_as(begin, view + offset_of(begin), bytes));
    std::memcpy(view + offset_of(begin), begin, bytes);
    if (!map_again(begin, bytes, MAP_FIXED)) {
        forget_shadows(begin, bytes);
        return false;
    }
    forget_private(begin, bytes);
    return true;
}

bool adopt_run(const PageRun& run) {
    std::byte* view = second_view(offset_of(run.end));
    if (view == nullptr || !is_anonymous(run.begin, run.end)) return false;
    for (std::byte* at = run.begin; at < run.end; at += kPieceBytes)
        if (!adopt_piece(at, std::min<std::uint64_t>(kPieceBytes, static_cast<std::uint64_t>(run.end - at)),
                         view))
            return false;
    os::collapse_as_private(run.begin, static_cast<std::uint64_t>(run.end - run.begin));
    return true;
}

// Whether a partial page can be read by peers: it is the segment's, or has a shadow.
bool is_readable_edge(const std::byte* at, std::uint64_t bytes) {
    return bytes == 0 || is_shared(at, bytes) ||
           (is_private(at, bytes) && !is_changed(at, bytes, kAnyChange) &&
            second_view(end_offset(at, bytes)) != nullptr);
}

void refresh(const std::byte* at, std::uint64_t bytes) {
    if (bytes == 0 || !is_private(at, bytes)) return;
    std::byte* view = second_view(end_offset(at, bytes));
    if (view == nullptr) return;
    g_any_shadow.store(true, std::memory_order_relaxed);
    std::memcpy(view + offset_of(at), at, bytes);
}

}  // namespace

base::HeapMode mode() {
    base::HeapMode mode = base::HeapMode::adaptive;
    base::parse_heap_mode(base::env("COCO_HEAP"), mode);
    return mode;
}

bool bears_private() {
    enum { kUnknown, kYes, kNo };
    static constinit std::atomic<int> answer{kUnknown};  // relaxed: nothing else goes with the answer
    if (answer.load(std::memory_order_relaxed) == kUnknown) {
        const bool yes = mode() == base::HeapMode::adaptive && !must_reserve_pages() &&
                         !is_strict_overcommit() && !is_data_bounded();
        answer.store(yes ? kYes : kNo, std::memory_order_relaxed);
    }
    return own().bytes != 0 && answer.load(std::memory_order_relaxed) == kYes;
}

bool make_private(std::byte* begin, std::uint64_t bytes) {
    void* mapped =
        kernel::mmap(begin, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (mapped == MAP_FAILED) return false;
    note_gone(begin, bytes);
    note_private(begin, bytes);
    return true;
}

bool end_private(std::byte* begin, std::uint64_t bytes) {
    if (!map_again(begin, bytes, MAP_FIXED)) return false;
    forget_private(begin, bytes);
    return true;
}

bool move_private(std::byte* from, std::byte* to, std::uint64_t bytes) {
#ifdef MREMAP_DONTUNMAP
    const std::uint64_t whole = base::round_up(bytes, os::page_bytes());
    if (page_of(from) != from || page_of(to) != to || own().bytes == 0) return false;
    for (std::byte* begin : {from, to}) {
        const PageRun run = run_at(begin, begin + whole);
        if (run.changes != kPrivate || run.end != begin + whole || !is_anonymous(begin, begin + whole))
            return false;
    }
    if (!is_one_mapping(from, from + whole)) return false;
    int saved = errno;
    note_gone(to, whole);
    note_gone(from, whole);
    const bool moved =
        kernel::mremap(from, whole, whole, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to) == to;
    if (!moved && !make_private(to, whole))
        std::abort();  // the kernel has unmapped the target, and has no memory to map it again
    errno = saved;
    return moved;
#else
    (void)from, (void)to, (void)bytes;
    return false;
#endif
}

void forget_shadows(const void* address, std::uint64_t bytes) {
    if (g_any_shadow.load(std::memory_order_relaxed) && is_own_descriptor(own().fd))
        os::punch_hole(own().fd, offset_of(address), bytes);
}

bool share_fresh_block(void* block, std::uint64_t usable_bytes) {
    if (!is_private(block, usable_bytes)) return true;
    std::byte* begin = page_of(block);
    std::byte* end = page_of(static_cast<std::byte*>(block) + usable_bytes + os::page_bytes() - 1);
    for (PageRun run = run_at(begin, end); run.begin != run.end; run = run_at(run.end, end))
        if ((run.changes & kPrivate) != 0 &&
            !end_private(run.begin, static_cast<std::uint64_t>(run.end - run.begin)))
            return false;
    return true;
}

namespace {

bool is_in_segment(const void* address, std::uint64_t bytes) {
    return own().bytes != 0 && offset_of(address) < own().bytes && bytes <= own().bytes - offset_of(address);
}

bool is_readable(const void* address, std::uint64_t bytes) {
    const auto* from = static_cast<const std::byte*>(address);
    const Inner inner = inner_of(address, bytes);
    if (inner.begin >= inner.end) return is_readable_edge(from, bytes);
    if (!is_shared(inner.begin, static_cast<std::uint64_t>(inner.end - inner.begin))) return false;
    const auto head_bytes = static_cast<std::uint64_t>(inner.begin - from);
    const auto tail_bytes = static_cast<std::uint64_t>(from + bytes - inner.end);
    return is_readable_edge(from, head_bytes) && is_readable_edge(inner.end, tail_bytes);
}

}  // namespace

const std::byte* readable_at(const void* address, std::uint64_t bytes) {
    if (!is_in_segment(address, bytes)) return alias_of(address, bytes);
    return is_readable(address, bytes) ? static_cast<const std::byte*>(address) : nullptr;
}

bool may_adopt(const void* address, std::uint64_t bytes) {
    if (own().bytes == 0 || is_held(address, bytes) || os::may_have_pinned_memory()) return false;
    return is_in_segment(address, bytes) || (adopts_outside(bytes) && !os::may_have_watched_memory());
}

bool adopt(const void* address, std::uint64_t bytes) {
    if (!may_adopt(address, bytes)) return false;
    if (!is_in_segment(address, bytes)) {
        const bool adopted = adopt_outside(address, bytes);
        announce_gone();
        return adopted;
    }
    const Inner inner = inner_of(address, bytes);
    static constinit base::Lock adopting;
    static constinit RunsLeft runs_left;
    std::scoped_lock hold(adopting);
    int saved = errno;
    for (PageRun run = run_at(inner.begin, inner.end); run.begin != run.end;
         run = run_at(run.end, inner.end)) {
        if (run.changes == 0) continue;
        if (run.changes != kPrivate || !runs_left.is_any() || !adopt_run(run)) break;
        runs_left.take();
    }
    announce_gone();
    errno = saved;
    return is_readable(address, bytes);
}

void refresh_shadows(const void* address, std::uint64_t bytes) {
    if (!is_in_segment(address, bytes)) return refresh_alias(address, bytes);
    const auto* from = static_cast<const std::byte*>(address);
    const Inner inner = inner_of(address, bytes);
    if (inner.begin >= inner.end) return refresh(from, bytes);
    refresh(from, static_cast<std::uint64_t>(inner.begin - from));
    refresh(inner.end, static_cast<std::uint64_t>(from + bytes - inner.end));
}

}  // namespace coco::heap
