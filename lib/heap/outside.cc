// SPDX-License-Identifier: BSD-3-Clause
#include "heap/outside.h"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "base/bits.h"
#include "heap/copy_written.h"
#include "heap/fork.h"
#include "heap/heap.h"
#include "heap/own_segment.h"
#include "heap/pages.h"
#include "heap/private_blocks.h"
#include "os/cpu.h"
#include "os/next_calls.h"
#include "os/own_mappings.h"
#include "os/shared_memory.h"

namespace coco::heap {
namespace {

// Page bounds only. The alias is the address of the region's first page in the own segment.
struct Region {
    std::byte* begin;
    std::byte* end;
    std::byte* alias;

    bool contains(const std::byte* from, const std::byte* to) const { return begin <= from && to <= end; }
    std::byte* alias_at(const std::byte* address) const { return alias + (address - begin); }
    std::byte* alias_end() const { return alias + (end - begin); }
};

constexpr int kRegionsMost = 256;
// A region reaches beyond the mapping that it is made for, as that may grow.
constexpr std::uint64_t kSlackBytes = 64u << 20;
constexpr std::uint64_t kStackBytesMost = std::uint64_t{1} << 30;
// As much is copied and mapped at once, so that no adoption needs twice the memory of what it adopts.
constexpr std::uint64_t kPieceBytes = 4u << 20;
// Each adopted range may divide a mapping in three, of which the kernel gives a process 65,530 by default.
constexpr int kMappingsMost = 32 * 1024;

constinit std::mutex g_lock;  // guards the regions
constinit Region g_regions[kRegionsMost] = {};
constinit int g_count = 0;
// The bounds of all regions, for those who take no lock. Relaxed: whoever sees none yet has no adopted page in its hands.
constinit std::atomic<std::uintptr_t> g_low{UINTPTR_MAX}, g_high{0};

std::byte* page_behind(const void* address, std::uint64_t bytes) {
    return page_of(static_cast<const std::byte*>(address) + bytes + os::page_bytes() - 1);
}

const Region* region_of(const void* address, std::uint64_t bytes) {
    const std::byte *from = page_of(address), *to = page_behind(address, bytes);
    for (int i = 0; i < g_count; ++i)
        if (g_regions[i].contains(from, to)) return &g_regions[i];
    return nullptr;
}

bool overlaps_any(const void* address, std::uint64_t bytes) {
    const auto from = reinterpret_cast<std::uintptr_t>(address);
    return from < g_high.load(std::memory_order_relaxed) &&
           from + bytes > g_low.load(std::memory_order_relaxed);
}

// Whether a mapping shows a region's pages, each in its place, at `at`.
bool is_in_place(const Region& region, const os::Mapping& mapping, const std::byte* at) {
    return is_of_segment(mapping) && mapping.offset + (reinterpret_cast<std::uint64_t>(at) - mapping.begin) ==
                                         offset_of(region.alias_at(at));
}

// Calls act(begin, end, mapping) for each mapping in a range, until it returns false. Returns: false then, or where nothing
// is mapped or the kernel cannot be asked.
template <class Act>
bool for_each_mapping(std::byte* begin, std::byte* end, Act act) {
    while (begin < end) {
        os::Mapping mapping;
        if (os::mapping_at(reinterpret_cast<std::uint64_t>(begin), mapping) != os::Told::mapping)
            return false;
        std::byte* stop = std::min(end, reinterpret_cast<std::byte*>(mapping.end));
        if (!act(begin, stop, mapping)) return false;
        begin = stop;
    }
    return true;
}

bool is_all_in_place(const Region& region, const Inner& inner) {
    return inner.begin < inner.end &&
           for_each_mapping(inner.begin, inner.end,
                            [&](std::byte* at, std::byte*, const os::Mapping& mapping) {
                                return is_in_place(region, mapping, at);
                            });
}

bool is_adoptable(const os::Mapping& mapping) {
    return !mapping.shared && mapping.inode == 0 && mapping.protection == (PROT_READ | PROT_WRITE);
}

// Gives pages of the annex back. Page bounds only.
void punch(std::byte* alias, std::uint64_t bytes) {
    if (bytes != 0 && is_own_descriptor(own().fd)) os::punch_hole(own().fd, offset_of(alias), bytes);
}

// Whether a mapping shows the whole segment, where it always is, or a second time to be written to.
bool is_a_view(const os::Mapping& mapping) {
    return mapping.begin - reinterpret_cast<std::uint64_t>(own().base) < own().bytes ||
           mapping.end - mapping.begin > annex().bytes;
}

// Which pages of the annex some mapping shows, wherever the program may have moved it.
class PagesInUse {
  public:
    // Returns: false if they cannot be read, or are in too many mappings.
    bool read() {
        count_ = lines_ = 0;
        std::scoped_lock hold(os::one_mapping_list());
        os::MappingList list;
        if (!list.is_open()) return false;
        for (os::Mapping mapping; list.next(mapping); ++lines_)
            if (is_of_segment(mapping) && !is_a_view(mapping) && !add(mapping)) return false;
        std::sort(runs_, runs_ + count_, [](const Run& a, const Run& b) { return a.begin < b.begin; });
        return true;
    }
    int mappings() const { return lines_; }
    // Calls act(begin, end) for each part of a range of offsets that is not in use. Returns: whether that is all of it.
    template <class Act>
    bool for_each_unused(std::uint64_t begin, std::uint64_t end, Act act) const {
        bool any = false;
        for (int i = 0; i < count_ && begin < end; ++i) {
            if (runs_[i].end <= begin) continue;
            if (runs_[i].begin >= end) break;
            any = true;
            if (begin < runs_[i].begin) act(begin, runs_[i].begin);
            begin = runs_[i].end;
        }
        if (begin < end) act(begin, end);
        return !any;
    }

  private:
    static constexpr int kMost = 8 * 1024;
    struct Run {
        std::uint64_t begin, end;
    };
    // With a page on either side, of which a call that runs may have filled a part: the ends of what it shows.
    bool add(const os::Mapping& mapping) {
        if (count_ == kMost) return false;
        const std::uint64_t end = mapping.offset + (mapping.end - mapping.begin);
        runs_[count_++] = {mapping.offset - os::page_bytes(), end + os::page_bytes()};
        return true;
    }

    Run runs_[kMost] = {};
    int count_ = 0, lines_ = 0;
};
constinit PagesInUse g_in_use;  // under g_lock

void set_bounds() {
    std::uintptr_t low = UINTPTR_MAX, high = 0;
    for (int i = 0; i < g_count; ++i) {
        low = std::min(low, reinterpret_cast<std::uintptr_t>(g_regions[i].begin));
        high = std::max(high, reinterpret_cast<std::uintptr_t>(g_regions[i].end));
    }
    g_low.store(low, std::memory_order_relaxed);
    g_high.store(high, std::memory_order_relaxed);
}

// Gives back what nobody maps any more: of threads that have ended, libraries that were closed, system calls that no door
// has seen. Returns: false if there are too many mappings for one more to be adopted.
bool sweep() {
    if (!g_in_use.read() || g_in_use.mappings() > kMappingsMost) return false;
    for (int i = 0; i < g_count;) {
        const Region region = g_regions[i];
        const bool is_unused = g_in_use.for_each_unused(
            offset_of(region.alias), offset_of(region.alias_end()),
            [](std::uint64_t begin, std::uint64_t end) { punch(own().base + begin, end - begin); });
        if (is_unused)
            g_regions[i] = g_regions[--g_count];
        else
            ++i;
    }
    set_bounds();
    return true;
}

// The region whose alias has a byte of a range; null: none.
const Region* aliased_in(const std::byte* begin, std::uint64_t bytes) {
    for (int i = 0; i < g_count; ++i)
        if (begin < g_regions[i].alias_end() && g_regions[i].alias < begin + bytes) return &g_regions[i];
    return nullptr;
}

// Room in the annex, as far from a border of huge pages as `begin` is, so that the kernel can use them. Null: there is none.
std::byte* find_alias(const std::byte* begin, std::uint64_t bytes) {
    const Range room = annex();
    const auto wanted = reinterpret_cast<std::uintptr_t>(begin) % os::kHugePageBytes;
    auto aligned = [&](std::byte* at) {
        const auto number = reinterpret_cast<std::uintptr_t>(at);
        return at + (wanted + os::kHugePageBytes - number % os::kHugePageBytes) % os::kHugePageBytes;
    };
    if (bytes > room.bytes) return nullptr;
    for (std::byte* at = aligned(room.base); at <= room.base + (room.bytes - bytes);) {
        const Region* taken = aliased_in(at, bytes);
        if (taken == nullptr) return at;
        at = aligned(taken->alias_end());
    }
    return nullptr;
}

// The bounds of the region to be made for a range: its mappings, and room for them to grow.
Inner bounds_for(std::byte* from, std::byte* to) {
    std::uint64_t low = reinterpret_cast<std::uint64_t>(from), high = low;
    if (!for_each_mapping(from, to, [&](std::byte*, std::byte*, const os::Mapping& mapping) {
            low = std::min(low, mapping.begin);
            high = std::max(high, mapping.end);
            return true;
        }))
        return {nullptr, nullptr};
    const std::uint64_t initial = getauxval(AT_EXECFN);  // at the first stack's end
    if (low <= initial && initial < high) {
        rlimit stack{};
        const std::uint64_t limit = getrlimit(RLIMIT_STACK, &stack) == 0
                                        ? std::min<std::uint64_t>(stack.rlim_cur, kStackBytesMost)
                                        : kStackBytesMost;
        low = std::min(low, high - std::min(high, base::round_up(limit, os::page_bytes())));
    } else {
        low -= std::min(low, kSlackBytes);
        high += kSlackBytes;
    }
    return {reinterpret_cast<std::byte*>(low), reinterpret_cast<std::byte*>(high)};
}

const Region* make_region(const void* address, std::uint64_t bytes) {
    std::byte *from = page_of(address), *to = page_behind(address, bytes);
    Inner bounds = bounds_for(from, to);
    if (bounds.end == nullptr || g_count == kRegionsMost) return nullptr;
    for (int i = 0; i < g_count; ++i) {
        const Region& other = g_regions[i];
        if (other.begin < to && from < other.end) return nullptr;
        if (other.end <= from) bounds.begin = std::max(bounds.begin, other.end);
        if (other.begin >= to) bounds.end = std::min(bounds.end, other.begin);
    }
    std::byte* alias = find_alias(bounds.begin, static_cast<std::uint64_t>(bounds.end - bounds.begin));
    if (alias == nullptr) {  // of a large mapping, the range alone
        bounds = {from, to};
        alias = find_alias(from, static_cast<std::uint64_t>(to - from));
    }
    if (alias == nullptr) return nullptr;
    g_regions[g_count++] = {bounds.begin, bounds.end, alias};
    set_bounds();
    return &g_regions[g_count - 1];
}

// By libc's mmap, so that libraries that remember what they have registered (UCX) forget it.
bool adopt_piece(const Region& region, std::byte* at, std::uint64_t bytes) {
    std::byte* alias = region.alias_at(at);
    std::memcpy(alias, at, bytes);
    os::OwnCalls own_calls;
    if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, own().fd,
             static_cast<off_t>(offset_of(alias))) == at)
        return true;
    punch(alias, bytes);
    return false;
}

bool adopt_run(const Region& region, std::byte* begin, std::byte* end) {
    for (std::byte* at = begin; at < end; at += kPieceBytes)
        if (!adopt_piece(region, at, std::min(kPieceBytes, static_cast<std::uint64_t>(end - at))))
            return false;
    return true;
}

}  // namespace

bool adopts_outside() {
    os::Mapping any;
    if (mode() == base::HeapMode::shared || annex().bytes == 0) return false;
    if (!forks_are_guarded()) release(allocate_shared(os::page_bytes(), os::page_bytes()));
    return forks_are_guarded() &&
           os::mapping_at(reinterpret_cast<std::uint64_t>(own().base), any) == os::Told::mapping;
}

const std::byte* alias_of(const void* address, std::uint64_t bytes) {
    if (!overlaps_any(address, bytes)) return nullptr;
    std::scoped_lock hold(g_lock);
    const Region* region = region_of(address, bytes);
    if (region == nullptr || !is_all_in_place(*region, inner_of(address, bytes))) return nullptr;
    return region->alias_at(static_cast<const std::byte*>(address));
}

bool is_adopted_outside(const void* address) {
    return alias_of(page_of(address), os::page_bytes()) != nullptr;
}

void refresh_alias(const void* address, std::uint64_t bytes) {
    std::scoped_lock hold(g_lock);
    const Region* region = region_of(address, bytes);
    if (region == nullptr) return;
    const auto* from = static_cast<const std::byte*>(address);
    const Inner inner = inner_of(address, bytes);
    std::memcpy(region->alias_at(from), from, static_cast<std::size_t>(inner.begin - from));
    std::memcpy(region->alias_at(inner.end), inner.end, static_cast<std::size_t>(from + bytes - inner.end));
}

bool adopt_outside(const void* address, std::uint64_t bytes) {
    const Inner inner = inner_of(address, bytes);
    if (inner.begin >= inner.end || !is_own_descriptor(own().fd)) return false;
    const int saved = errno;
    std::scoped_lock hold(g_lock);
    const Region* region = sweep() ? region_of(address, bytes) : nullptr;
    if (region == nullptr) region = make_region(address, bytes);
    const bool adopted = region != nullptr &&
                         for_each_mapping(inner.begin, inner.end,
                                          [&](std::byte* at, std::byte* end, const os::Mapping& mapping) {
                                              return is_in_place(*region, mapping, at) ||
                                                     (is_adoptable(mapping) && adopt_run(*region, at, end));
                                          });
    errno = saved;
    return adopted;
}

void sweep_outside() {
    if (g_high.load(std::memory_order_relaxed) == 0 || !g_lock.try_lock()) return;
    const int saved = errno;
    sweep();
    errno = saved;
    g_lock.unlock();
}

bool may_be_outside_adopted(const void* address) { return overlaps_any(address, 1); }

LeavingPages::LeavingPages(const void* address, std::size_t bytes) {
    if (!overlaps_any(address, bytes) || os::t_own_calls != 0 || !g_lock.try_lock()) return;
    std::byte *from = page_of(address), *to = page_behind(address, bytes);
    const int saved = errno;
    for (int i = 0; i < g_count; ++i) {
        const Region& region = g_regions[i];
        std::byte *begin = std::max(from, region.begin), *end = std::min(to, region.end);
        while (begin < end && count_ < kMost) {
            os::Mapping mapping;
            if (os::mapping_from(reinterpret_cast<std::uint64_t>(begin), mapping) != os::Told::mapping) break;
            begin = std::max(begin, reinterpret_cast<std::byte*>(mapping.begin));
            if (begin >= end) break;
            std::byte* stop = std::min(end, reinterpret_cast<std::byte*>(mapping.end));
            if (is_in_place(region, mapping, begin))
                runs_[count_++] = {region.alias_at(begin), static_cast<std::uint64_t>(stop - begin)};
            begin = stop;
        }
    }
    errno = saved;
    g_lock.unlock();
}

void LeavingPages::drop() const {
    const int saved = errno;
    for (int i = 0; i < count_; ++i) punch(runs_[i].alias, runs_[i].bytes);
    errno = saved;
}

void lock_outside() { g_lock.lock(); }
void unlock_outside() { g_lock.unlock(); }

namespace {

// Puts a private copy in the place of an adopted run, in one step. By bare calls, as in a forked child.
bool privatize(std::byte* begin, std::uint64_t bytes, std::uint64_t offset, int fd, int protection) {
    void* room = os::bare_calls().mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    constexpr int kOpen = PROT_READ | PROT_WRITE;
    return room != MAP_FAILED && copy_written(fd, offset, bytes, begin, static_cast<std::byte*>(room)) &&
           os::bare_calls().mremap(room, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, begin) == begin &&
           ((protection & kOpen) == kOpen || os::bare_calls().mprotect(begin, bytes, protection) == 0);
}

// What runs on a stack of its own while the thread's gets private pages. Lies at the start of that stack.
struct StackJob {
    ucontext_t caller, leaver;
    const std::byte* on_stack;
};
constexpr std::size_t kLeavingStackBytes = 64 * 1024;
StackJob* g_job = nullptr;  // under g_lock

// What a fork writes to while parent and child share the stack: frames below this one, and those that called it.
constexpr std::uint64_t kFramesBelow = 128 * 1024, kFramesAbove = 16 * 1024;

void leave_on_other_stack() {
    const Region* region = region_of(g_job->on_stack, 1);
    if (region == nullptr) return;
    std::byte* at = std::max(region->begin, page_of(g_job->on_stack - kFramesBelow));
    std::byte* const end = std::min(region->end, page_behind(g_job->on_stack, kFramesAbove));
    os::Mapping mapping;
    while (at < end && os::mapping_from(reinterpret_cast<std::uint64_t>(at), mapping) == os::Told::mapping) {
        at = std::max(at, reinterpret_cast<std::byte*>(mapping.begin));
        std::byte* stop = std::min(end, reinterpret_cast<std::byte*>(mapping.end));
        if (at < stop && is_in_place(*region, mapping, at))
            privatize(at, static_cast<std::uint64_t>(stop - at), offset_of(region->alias_at(at)), own().fd,
                      mapping.protection);
        at = stop;
    }
}

}  // namespace

void leave_adopted_stack() {
    const auto* frame = static_cast<const std::byte*>(__builtin_frame_address(0));
    if (!may_be_outside_adopted(frame) || region_of(frame, 1) == nullptr) return;
    void* stack = os::bare_calls().mmap(nullptr, kLeavingStackBytes, PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) return;
    g_job = static_cast<StackJob*>(stack);
    g_job->on_stack = frame;
    getcontext(&g_job->leaver);
    g_job->leaver.uc_stack = {
        .ss_sp = g_job + 1, .ss_flags = 0, .ss_size = kLeavingStackBytes - sizeof(StackJob)};
    g_job->leaver.uc_link = &g_job->caller;
    makecontext(&g_job->leaver, leave_on_other_stack, 0);
    swapcontext(&g_job->caller, &g_job->leaver);
    os::bare_calls().munmap(stack, kLeavingStackBytes);
}

bool privatize_outside(const Segment& segment) {
    if (g_low.load(std::memory_order_relaxed) >= g_high.load(std::memory_order_relaxed)) return true;
    const int fd = is_own_descriptor(segment.fd) ? segment.fd : -1;
    os::MappingList list;
    os::Mapping mapping;
    while (list.is_open() && list.next(mapping))
        if (is_of_segment(mapping) && !is_a_view(mapping) &&
            !privatize(reinterpret_cast<std::byte*>(mapping.begin), mapping.end - mapping.begin,
                       mapping.offset, fd, mapping.protection))
            return false;
    g_count = 0;
    set_bounds();
    return list.is_open();
}

}  // namespace coco::heap
