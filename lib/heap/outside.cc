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
#include <span>

#include "base/bits.h"
#include "base/kernel.h"
#include "base/lock.h"
#include "heap/copy_written.h"
#include "heap/fork.h"
#include "heap/gone.h"
#include "heap/heap.h"
#include "heap/own_segment.h"
#include "heap/pages.h"
#include "heap/private_blocks.h"
#include "os/cpu.h"
#include "os/numa.h"
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

constinit base::Lock g_lock;  // guards the regions
constinit thread_local bool t_holds_lock = false;
class Hold {
  public:
    Hold() {
        g_lock.lock();
        t_holds_lock = true;
    }
    ~Hold() {
        t_holds_lock = false;
        g_lock.unlock();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
};

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
    os::MappingsFrom mappings(reinterpret_cast<std::uint64_t>(begin));
    while (begin < end) {
        os::Mapping mapping;
        if (mappings.next(mapping) != os::Told::mapping ||
            reinterpret_cast<std::byte*>(mapping.begin) > begin)
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

// The mappings of the process when they were last counted. Relaxed: about so many.
constinit std::atomic<int> g_mappings{0};

// Whether it pays to find a range's mappings in each call. In the list they take some 0.3 us each: a small part of what moves
// such a range.
bool is_worth_finding(std::uint64_t bytes) {
    constexpr std::uint64_t kListedBytesLeast = 2u << 20, kBytesPerMapping = 4096;
    return bytes >= std::max(kListedBytesLeast, kBytesPerMapping * static_cast<std::uint64_t>(g_mappings.load(
                                                                       std::memory_order_relaxed))) ||
           os::can_ask_for_mappings();
}

bool is_adoptable(const os::Mapping& mapping) {
    return !mapping.shared && mapping.inode == 0 && mapping.protection == (PROT_READ | PROT_WRITE);
}

// A child of the bare clone system call has the regions, but shares their memory with its parent, and hears of the parent's
// mappings.
bool is_owner() { return own_id().pid == kernel::getpid(); }

// Whether a mapping shows nothing but pages of the annex, and not where the segment itself lies. Second views of the segment
// show other pages first, also where the kernel has divided them.
bool shows_annex(const os::Mapping& mapping) {
    return is_of_segment(mapping) && mapping.offset >= offset_of(annex().base) &&
           mapping.begin - reinterpret_cast<std::uint64_t>(own().base) >= own().bytes;
}

// Which pages of the annex some mapping shows, wherever the program may have moved it.
class PagesInUse {
  public:
    struct Run {
        std::uint64_t begin, end;  // offsets
        std::byte* at;
        int protection;
    };

    // Returns: false if the kernel does not tell, or there are too many.
    bool read() {
        count_ = mappings_ = 0;
        bool has_seen_own = false;
        os::Mapping mapping;
        os::MappingsFrom all(0);
        os::Told told = os::Told::mapping;
        while ((told = all.next(mapping)) == os::Told::mapping) {
            ++mappings_;
            has_seen_own = has_seen_own || is_own_mapping(mapping);
            if (shows_annex(mapping) && !add(mapping)) return false;
        }
        g_mappings.store(mappings_, std::memory_order_relaxed);
        std::sort(runs_, runs_ + count_, [](const Run& a, const Run& b) { return a.begin < b.begin; });
        return told == os::Told::none && has_seen_own;
    }
    int mappings() const { return mappings_; }
    std::span<const Run> runs() const { return {runs_, static_cast<std::size_t>(count_)}; }
    bool is_used(std::uint64_t begin, std::uint64_t end) const {
        return std::ranges::any_of(runs(),
                                   [&](const Run& run) { return run.begin < end && begin < run.end; });
    }
    // Calls act(begin, end) for each part of a range of offsets that is not in use, nor next to a page in use: a call that
    // runs may have filled that, with the ends of what it shows. Returns: whether none of the range is in use.
    template <class Act>
    bool for_each_unused(std::uint64_t begin, std::uint64_t end, Act act) const {
        bool is_unused = true;
        for (const Run& run : runs()) {
            if (run.end + os::page_bytes() <= begin) continue;
            if (run.begin - os::page_bytes() >= end || begin >= end) break;
            is_unused = false;
            if (begin < run.begin - os::page_bytes()) act(begin, run.begin - os::page_bytes());
            begin = run.end + os::page_bytes();
        }
        if (begin < end) act(begin, end);
        return is_unused;
    }

  private:
    static constexpr int kMost = 8 * 1024;

    bool add(const os::Mapping& mapping) {
        if (count_ == kMost) return false;
        runs_[count_++] = {mapping.offset, mapping.offset + (mapping.end - mapping.begin),
                           reinterpret_cast<std::byte*>(mapping.begin), mapping.protection};
        return true;
    }

    Run runs_[kMost] = {};
    int count_ = 0, mappings_ = 0;
};
constinit PagesInUse g_in_use;   // under g_lock
constinit bool g_known = false;  // what a forked child finds there

// Gives what was written to pages of the annex back.
void punch(std::uint64_t begin, std::uint64_t end) {
    if (!is_own_descriptor(own().fd)) return;
    os::Written written(own().fd);
    while (begin < end) {
        const auto [from, stop] = written.next(begin, end);
        begin = stop;
        if (from == stop) break;
        note_gone(own().base + from, stop - from);
        if (!os::punch_hole(own().base + from, stop - from)) os::punch_hole(own().fd, from, stop - from);
    }
}

void set_bounds() {
    std::uintptr_t low = UINTPTR_MAX, high = 0;
    for (int i = 0; i < g_count; ++i) {
        low = std::min(low, reinterpret_cast<std::uintptr_t>(g_regions[i].begin));
        high = std::max(high, reinterpret_cast<std::uintptr_t>(g_regions[i].end));
    }
    g_low.store(low, std::memory_order_relaxed);
    g_high.store(high, std::memory_order_relaxed);
}

// Gives back what nobody maps any more. Requires: g_in_use was read under this hold of the lock.
void give_unused_back() {
    for (int i = 0; i < g_count;) {
        const Region region = g_regions[i];
        if (g_in_use.for_each_unused(offset_of(region.alias), offset_of(region.alias_end()), punch))
            g_regions[i] = g_regions[--g_count];
        else
            ++i;
    }
    set_bounds();
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
        const std::uint64_t limit = kernel::getrlimit(RLIMIT_STACK, &stack) == 0
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

bool adopt_piece(const Region& region, std::byte* at, std::uint64_t bytes) {
    std::byte* alias = region.alias_at(at);
    static_cast<void>(os::prefer_as(at, alias, bytes));
    std::memcpy(alias, at, bytes);
    note_gone(at, bytes);
    if (kernel::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, own().fd,
                     offset_of(alias)) == at)
        return true;
    punch(offset_of(alias), offset_of(alias) + bytes);
    return false;
}

// Not where the pages that stand for it are shown elsewhere: the program has moved them by a call that no door has seen.
bool adopt_run(const Region& region, std::byte* begin, std::byte* end) {
    if (g_in_use.is_used(offset_of(region.alias_at(begin)), offset_of(region.alias_at(end)))) return false;
    for (std::byte* at = begin; at < end; at += kPieceBytes)
        if (!adopt_piece(region, at, std::min(kPieceBytes, static_cast<std::uint64_t>(end - at))))
            return false;
    os::collapse_as_private(begin, static_cast<std::uint64_t>(end - begin));
    return true;
}

}  // namespace

bool adopts_outside(std::uint64_t bytes) {
    if (mode() == base::HeapMode::shared || annex().bytes == 0 || !is_worth_finding(bytes)) return false;
    if (!forks_are_guarded()) release(allocate_shared(os::page_bytes(), os::page_bytes()));
    return forks_are_guarded();
}

namespace {

const std::byte* find_alias_of(const void* address, std::uint64_t bytes) {
    if (!overlaps_any(address, bytes)) return nullptr;
    const Hold hold;
    const Region* region = region_of(address, bytes);
    if (region == nullptr || !is_all_in_place(*region, inner_of(address, bytes))) return nullptr;
    return region->alias_at(static_cast<const std::byte*>(address));
}

}  // namespace

const std::byte* alias_of(const void* address, std::uint64_t bytes) {
    return is_worth_finding(bytes) ? find_alias_of(address, bytes) : nullptr;
}

bool is_adopted_outside(const void* address) {
    return find_alias_of(page_of(address), os::page_bytes()) != nullptr;
}

void refresh_alias(const void* address, std::uint64_t bytes) {
    const auto* from = static_cast<const std::byte*>(address);
    std::byte* alias = nullptr;
    {
        const Hold hold;
        const Region* region = region_of(address, bytes);
        if (region == nullptr) return;
        alias = region->alias_at(from);
    }
    const Inner inner = inner_of(address, bytes);
    const auto head_bytes = static_cast<std::size_t>(inner.begin - from);
    const auto tail_at = static_cast<std::size_t>(inner.end - from);
    std::memcpy(alias, from, head_bytes);
    std::memcpy(alias + tail_at, inner.end, bytes - tail_at);
}

bool adopt_outside(const void* address, std::uint64_t bytes) {
    const Inner inner = inner_of(address, bytes);
    if (inner.begin >= inner.end || !is_own_descriptor(own().fd) || !is_owner()) return false;
    const int saved = errno;
    const Hold hold;
    if (!g_in_use.read() || g_in_use.mappings() > kMappingsMost) return false;
    const Region* region = region_of(address, bytes);
    if (region == nullptr) {
        give_unused_back();
        region = make_region(address, bytes);
    }
    const bool adopted = region != nullptr &&
                         reach_own(kAnnex, offset_of(region->alias_at(page_behind(address, bytes)))) &&
                         for_each_mapping(inner.begin, inner.end,
                                          [&](std::byte* at, std::byte* end, const os::Mapping& mapping) {
                                              return is_in_place(*region, mapping, at) ||
                                                     (is_adoptable(mapping) && adopt_run(*region, at, end));
                                          });
    errno = saved;
    return adopted;
}

void sweep_outside(std::uint64_t bytes) {
    constexpr std::uint64_t kWorthwhileBytes = 1u << 20;
    if (bytes < kWorthwhileBytes || g_high.load(std::memory_order_relaxed) == 0 || t_holds_lock ||
        !is_owner() || !g_lock.try_lock())
        return;
    const int saved = errno;
    if (g_in_use.read()) give_unused_back();
    errno = saved;
    g_lock.unlock();
}

bool may_be_outside_adopted(const void* address) { return overlaps_any(address, 1); }
bool is_any_outside_adopted() { return g_high.load(std::memory_order_relaxed) != 0; }

namespace {

// Calls act(begin, end, mapping) for each part of a range that is adopted.
template <class Act>
void for_each_adopted(const void* address, std::uint64_t bytes, Act act) {
    if (!overlaps_any(address, bytes) || !is_owner()) return;
    std::byte *at = page_of(address), *const to = page_behind(address, bytes);
    os::Mapping mapping;
    os::MappingsFrom mappings(reinterpret_cast<std::uint64_t>(at));
    while (at < to && mappings.next(mapping) == os::Told::mapping) {
        at = std::max(at, reinterpret_cast<std::byte*>(mapping.begin));
        std::byte* stop = std::min(to, reinterpret_cast<std::byte*>(mapping.end));
        if (at < stop && shows_annex(mapping)) act(at, stop, mapping);
        at = stop;
    }
}

bool map_fresh(std::byte* at, std::uint64_t bytes, int protection) {
    return kernel::mmap(at, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at;
}

// Puts a private copy in the place of an adopted run, in one step. By bare calls, as in a forked child.
bool privatize(std::byte* begin, std::uint64_t bytes, std::uint64_t offset, int fd, int protection) {
    void* room = kernel::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    constexpr int kOpen = PROT_READ | PROT_WRITE;
    os::Written written(fd);
    return room != MAP_FAILED && copy_written(written, offset, bytes, begin, static_cast<std::byte*>(room)) &&
           kernel::mremap(room, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, begin) == begin &&
           ((protection & kOpen) == kOpen || kernel::mprotect(begin, bytes, protection) == 0);
}

// The same in place, so that the pages become one mapping with their neighbours again, as they were.
bool privatize_in_place(std::byte* begin, std::uint64_t bytes, std::uint64_t offset, int protection) {
    void* room = kernel::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return false;
    constexpr int kOpen = PROT_READ | PROT_WRITE;
    os::Written written(own().fd);
    const bool done = copy_written(written, offset, bytes, begin, static_cast<std::byte*>(room)) &&
                      map_fresh(begin, bytes, kOpen);
    if (done) std::memcpy(begin, room, bytes);
    kernel::munmap(room, bytes);
    return done && ((protection & kOpen) == kOpen || kernel::mprotect(begin, bytes, protection) == 0);
}

}  // namespace

std::uint64_t adopted_bytes(const void* address, std::uint64_t bytes) {
    std::uint64_t all = 0;
    for_each_adopted(address, bytes, [&](const std::byte* begin, const std::byte* end, const os::Mapping&) {
        all += static_cast<std::uint64_t>(end - begin);
    });
    return all;
}

bool leave_adopted(const void* address, std::uint64_t bytes, Bytes which) {
    const int saved = errno;
    bool good = true;
    for_each_adopted(address, bytes, [&](std::byte* begin, const std::byte* end, const os::Mapping& mapping) {
        const auto run_bytes = static_cast<std::uint64_t>(end - begin);
        const std::uint64_t offset =
            mapping.offset + (reinterpret_cast<std::uint64_t>(begin) - mapping.begin);
        good = good &&
               (which == Bytes::dropped ? map_fresh(begin, run_bytes, mapping.protection)
                                        : privatize_in_place(begin, run_bytes, offset, mapping.protection));
    });
    errno = saved;
    return good;
}

// A signal handler may have interrupted the thread that holds the lock: then the fork goes on as that thread left things.
void lock_outside() {
    if (t_holds_lock) return;
    g_lock.lock();
    const int saved = errno;
    g_known = g_count == 0 || g_in_use.read();
    errno = saved;
}
void unlock_outside() {
    if (!t_holds_lock) g_lock.unlock();
}

namespace {

// What a fork writes to while parent and child share the stack: frames below this one, and those that called it.
constexpr std::uint64_t kFramesBelow = 128 * 1024, kFramesAbove = 16 * 1024;

bool is_among_frames(const PagesInUse::Run& run, const std::byte* frame) {
    const std::byte* end = run.at + (run.end - run.begin);
    return run.at < frame + kFramesAbove && frame - kFramesBelow < end;
}

// What runs on a stack of its own while the thread's gets private pages. Lies at the start of that stack.
struct StackJob {
    ucontext_t caller, leaver;
    const std::byte* frame;
};
constexpr std::size_t kLeavingStackBytes = 64 * 1024;
StackJob* g_job = nullptr;  // under g_lock

void leave_on_other_stack() {
    for (const PagesInUse::Run& run : g_in_use.runs())
        if (is_among_frames(run, g_job->frame))
            privatize(run.at, run.end - run.begin, run.begin, own().fd, run.protection);
}

}  // namespace

void leave_adopted_stack() {
    const auto* frame = static_cast<const std::byte*>(__builtin_frame_address(0));
    if (g_count == 0 || !g_known || t_holds_lock) return;
    if (std::ranges::none_of(g_in_use.runs(), [&](const auto& run) { return is_among_frames(run, frame); }))
        return;
    void* stack =
        kernel::mmap(nullptr, kLeavingStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) return;
    g_job = static_cast<StackJob*>(stack);
    g_job->frame = frame;
    getcontext(&g_job->leaver);
    g_job->leaver.uc_stack = {
        .ss_sp = g_job + 1, .ss_flags = 0, .ss_size = kLeavingStackBytes - sizeof(StackJob)};
    g_job->leaver.uc_link = &g_job->caller;
    makecontext(&g_job->leaver, leave_on_other_stack, 0);
    swapcontext(&g_job->caller, &g_job->leaver);
    kernel::munmap(stack, kLeavingStackBytes);
    g_known = g_in_use.read();
}

bool privatize_outside(const Segment& segment) {
    if (g_count == 0) return true;
    const int fd = is_own_descriptor(segment.fd) ? segment.fd : -1;
    bool good = g_known;
    for (const PagesInUse::Run& run : g_in_use.runs())
        good = good && privatize(run.at, run.end - run.begin, run.begin, fd, run.protection);
    g_count = 0;
    set_bounds();
    return good;
}

}  // namespace coco::heap
