// SPDX-License-Identifier: BSD-3-Clause
#include "heap/mapping_calls.h"

#include <sys/mman.h>
#include <sys/shm.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/bits.h"
#include "base/kept_errno.h"
#include "heap/overlays.h"
#include "heap/own_segment.h"
#include "heap/segment.h"
#include "os/cpu.h"
#include "os/devices.h"
#include "os/next_calls.h"

namespace coco::heap {
namespace {

using os::MappingCalls;

std::byte* at(void* address, std::size_t offset = 0) { return static_cast<std::byte*>(address) + offset; }

// Makes a call that puts something else in a range's place, or nothing. That is noted before, so that nobody
// takes the range for shared meanwhile, and taken back where the call has failed before it changed anything.
// ENOMEM may come later than that.
template <class Call>
auto replace(const void* address, std::size_t bytes, Call call,
             decltype(&note_replaced) note = note_replaced) {
    const bool is_first = note(address, bytes);
    const auto result = call();
    if (std::intptr_t(result) == -1 && is_first && errno != ENOMEM) forget_replaced(address, bytes);
    return result;
}

// Whether a range has pages that are the segment's still.
bool shows_segment(const void* address, std::size_t bytes) {
    if (own().bytes == 0) return false;  // a forked child's are private
    const std::byte* end = static_cast<const std::byte*>(address) + bytes;
    for (PageRun run = run_at(address, end); run.begin != run.end; run = run_at(run.end, end))
        if ((run.changes & kGone) == 0) return true;
    return false;
}

void* fail(int why) {
    errno = why;
    return MAP_FAILED;
}

// Private memory for pages of the segment that move elsewhere; null: errno says why.
void* make_target(const MappingCalls& next, std::size_t bytes, int flags, void* wanted) {
    bool fixed = (flags & MREMAP_FIXED) != 0;
    void* target = program_mmap(next, fixed ? wanted : nullptr, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | (fixed ? MAP_FIXED : 0), -1, 0);
    return target == MAP_FAILED ? nullptr : target;
}

// Whether the kernel would not refuse such a move.
bool may_move(const void* address, std::uint64_t old_bytes, std::uint64_t new_bytes, int flags,
              const void* wanted) {
    constexpr int kKnown = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
    if ((flags & ~kKnown) != 0 || ((flags & MREMAP_DONTUNMAP) != 0 && old_bytes != new_bytes)) return false;
    if ((flags & MREMAP_FIXED) == 0) return true;
    auto from = reinterpret_cast<std::uintptr_t>(address), to = reinterpret_cast<std::uintptr_t>(wanted);
    return to % os::page_bytes() == 0 && (to + new_bytes <= from || from + old_bytes <= to);
}

// Private memory moves with its contents and is then nobody's but the mover's, in its children too. The pages
// of the segment cannot do that, so their contents move into private memory.
void* move_pages(const MappingCalls& next, void* address, std::size_t bytes, std::size_t new_bytes, int flags,
                 void* wanted) {
    bool fixed = (flags & MREMAP_FIXED) != 0, stays = (flags & MREMAP_DONTUNMAP) != 0;
    std::uint64_t old_end = base::round_up(bytes, os::page_bytes()),
                  new_end = base::round_up(new_bytes, os::page_bytes());
    if (bytes == 0 || new_bytes == 0 || reinterpret_cast<std::uintptr_t>(address) % os::page_bytes() != 0)
        return fail(EINVAL);
    if (!may_move(address, old_end, new_end, flags, wanted)) return fail(EINVAL);
    if (!fixed && !stays && new_end <= old_end) {
        if (new_end < old_end && program_munmap(next, at(address, new_end), old_end - new_end) != 0)
            return MAP_FAILED;
        return address;
    }
    if ((flags & MREMAP_MAYMOVE) == 0) return fail(fixed || stays ? EINVAL : ENOMEM);
    void* target = make_target(next, new_end, flags, wanted);
    if (target == nullptr) return MAP_FAILED;
    if (is_changed(address, bytes, kShut)) program_mprotect(next, address, old_end, PROT_READ | PROT_WRITE);
    std::memcpy(target, address, std::min(old_end, new_end));
    if (stays)
        program_madvise(next, address, old_end, MADV_DONTNEED);
    else
        program_munmap(next, address, old_end);
    return target;
}

// Makes the segment's own pages in a range read as zeros.
void drop_pages(void* address, std::size_t bytes) {
    const base::KeptErrno kept;
    const std::byte* end = at(address, bytes);
    for (PageRun run = run_at(address, end); run.begin != run.end; run = run_at(run.end, end)) {
        if ((run.changes & kGone) != 0) continue;
        auto run_bytes = static_cast<std::uint64_t>(run.end - run.begin);
        // Pages of a mount are never given back.
        if (!punch_shared(run.begin, run_bytes) && run.changes == 0) std::memset(run.begin, 0, run_bytes);
    }
}

}  // namespace

void* program_mmap(const MappingCalls& next, void* address, std::size_t bytes, int protection, int flags,
                   int fd, off_t offset) {
    os::expect_devices();
    const auto call = [&] { return next.mmap(address, bytes, protection, flags, fd, offset); };
    return (flags & MAP_FIXED) != 0 ? replace(address, bytes, call) : call();
}

int program_munmap(const MappingCalls& next, void* address, std::size_t bytes) {
    const auto call = [&] { return next.munmap(address, bytes); };
    // The kernel refuses other addresses (an announcement, perhaps: gone.h), and more than a process has.
    constexpr std::uint64_t kAddresses = std::uint64_t{1} << 48;
    const auto from = reinterpret_cast<std::uintptr_t>(address);
    if (from % os::page_bytes() != 0 || from > kAddresses || bytes > kAddresses - from) return call();
    const int result = replace(address, bytes, call, note_unmapped);
    if (result == 0) note_hole(address, bytes);
    return result;
}

void* program_mremap(const MappingCalls& next, void* address, std::size_t bytes, std::size_t new_bytes,
                     int flags, void* wanted) {
    if (shows_segment(address, std::max<std::size_t>(bytes, 1)))
        return is_changed(address, bytes, kGone) ? fail(EFAULT)
                                                 : move_pages(next, address, bytes, new_bytes, flags, wanted);
    const auto call = [&] { return next.mremap(address, bytes, new_bytes, flags, wanted); };
    void* moved = (flags & MREMAP_FIXED) != 0 ? replace(wanted, new_bytes, call) : call();
    if (moved == MAP_FAILED || (flags & MREMAP_DONTUNMAP) != 0) return moved;
    const std::size_t kept = moved == address ? base::round_up(new_bytes, os::page_bytes()) : 0;
    if (bytes > kept) note_hole(at(address, kept), bytes - kept);
    return moved;
}

int program_mprotect(const MappingCalls& next, void* address, std::size_t bytes, int protection) {
    const int result = next.mprotect(address, bytes, protection);
    note_protection(address, bytes, protection, result == 0);
    return result;
}

// The kernel drops the bytes of private memory by MADV_DONTNEED and MADV_FREE, and leaves those of shared
// memory; MADV_REMOVE it refuses for private memory.
int program_madvise(const MappingCalls& next, void* address, std::size_t bytes, int advice) {
    constexpr int kDontNeedLocked = 24;  // MADV_DONTNEED_LOCKED, which older headers lack
    const bool drops = advice == MADV_DONTNEED || advice == MADV_FREE || advice == kDontNeedLocked;
    if ((!drops && advice != MADV_REMOVE) || !shows_segment(address, bytes))
        return next.madvise(address, bytes, advice);
    if (advice == MADV_REMOVE) {
        errno = EINVAL;
        return -1;
    }
    const int result = next.madvise(address, bytes, advice == MADV_FREE ? MADV_DONTNEED : advice);
    if (result == 0 || errno == ENOMEM) drop_pages(address, bytes);
    return result;
}

void* program_shmat(const MappingCalls& next, int id, const void* address, int flags) {
    shmid_ds facts{};
    const auto call = [&] { return next.shmat(id, address, flags); };
    const bool replaces = (flags & SHM_REMAP) != 0 && address != nullptr && shmctl(id, IPC_STAT, &facts) == 0;
    return replaces ? replace(address, facts.shm_segsz, call) : call();
}

}  // namespace coco::heap
