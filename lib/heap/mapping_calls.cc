// SPDX-License-Identifier: BSD-3-Clause
#include "heap/mapping_calls.h"

#include <sys/mman.h>
#include <sys/shm.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/bits.h"
#include "base/index.h"
#include "heap/overlays.h"
#include "heap/own_segment.h"
#include "heap/private_overlays.h"
#include "heap/segment.h"
#include "os/cpu.h"
#include "os/devices.h"
#include "os/next_calls.h"
#include "os/shared_memory.h"

namespace coco::heap {
namespace {

using os::MappingCalls;

std::byte* at(void* address, std::size_t offset = 0) { return static_cast<std::byte*>(address) + offset; }

// A change that is noted before the call that makes it, so that nobody takes the range for shared meanwhile,
// and taken back where the call has failed before it changed anything. ENOMEM may come later than that.
class Noted {
  public:
    Noted(const void* address, std::size_t bytes, Changes change)
        : address_(address), bytes_(bytes), fresh_(note_change(address, bytes, change)) {}
    void* end(void* result) const {
        take_back(result == MAP_FAILED);
        return result;
    }
    int end(int result) const {
        take_back(result != 0);
        return result;
    }

  private:
    void take_back(bool failed) const {
        if (failed && fresh_ && errno != ENOMEM) forget_changes(address_, bytes_, kGone);
    }
    const void* address_;
    std::size_t bytes_;
    bool fresh_;
};

bool is_all(const void* address, std::size_t bytes, bool gone) {
    const std::byte* end = static_cast<const std::byte*>(address) + bytes;
    for (PageRun run = run_at(address, end); run.begin != run.end; run = run_at(run.end, end))
        if (((run.changes & kGone) != 0) != gone) return false;
    return true;
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
    if (own().bytes == 0) return;  // a forked child's are private
    int saved = errno;
    const std::byte* end = at(address, bytes);
    for (PageRun run = run_at(address, end); run.begin != run.end; run = run_at(run.end, end)) {
        if ((run.changes & kGone) != 0) continue;
        auto run_bytes = static_cast<std::uint64_t>(run.end - run.begin);
        // Pages of a mount are never given back.
        if (!punch_shared(run.begin, run_bytes) && run.changes == 0) std::memset(run.begin, 0, run_bytes);
    }
    errno = saved;
}

}  // namespace

void* program_mmap(const MappingCalls& next, void* address, std::size_t bytes, int protection, int flags,
                   int fd, off_t offset) {
    os::expect_devices();
    if ((flags & MAP_FIXED) != 0) note_private_change(address, bytes);
    if ((flags & MAP_FIXED) == 0 || !touches_segment(address, bytes))
        return next.mmap(address, bytes, protection, flags, fd, offset);
    Noted noted(address, bytes, kReplaced);
    return noted.end(next.mmap(address, bytes, protection, flags, fd, offset));
}

int program_munmap(const MappingCalls& next, void* address, std::size_t bytes) {
    // The kernel refuses it: an announcement, perhaps (gone.h).
    const bool is_whole = reinterpret_cast<std::uintptr_t>(address) % os::page_bytes() == 0;
    if (is_whole) note_private_hole(address, bytes);
    if (!is_whole || !touches_segment(address, bytes)) return next.munmap(address, bytes);
    Noted noted(address, bytes, kHole);
    return noted.end(next.munmap(address, bytes));
}

void* program_mremap(const MappingCalls& next, void* address, std::size_t bytes, std::size_t new_bytes,
                     int flags, void* wanted) {
    bool fixed = (flags & MREMAP_FIXED) != 0;
    if (touches_segment(address, std::max<std::size_t>(bytes, 1)) && is_all(address, bytes, false) &&
        own().bytes != 0)
        return move_pages(next, address, bytes, new_bytes, flags, wanted);
    bool from_segment = touches_segment(address, bytes),
         to_segment = fixed && touches_segment(wanted, new_bytes);
    if (from_segment && !is_all(address, bytes, true) && own().bytes != 0) return fail(EFAULT);
    if ((flags & MREMAP_MAYMOVE) != 0 || new_bytes < bytes) note_private_hole(address, bytes);
    if (fixed) note_private_change(wanted, new_bytes);
    if (!from_segment && !to_segment) return next.mremap(address, bytes, new_bytes, flags, wanted);
    bool fresh = to_segment && note_change(wanted, new_bytes, kReplaced);
    void* moved = next.mremap(address, bytes, new_bytes, flags, wanted);
    if (moved == MAP_FAILED) {
        if (fresh && errno != ENOMEM) forget_changes(wanted, new_bytes, kGone);
    } else if (from_segment && (flags & MREMAP_DONTUNMAP) == 0) {
        if (moved != address) note_change(address, bytes, kHole);
        if (moved == address && new_bytes < bytes)
            note_change(at(address, base::round_up(new_bytes, os::page_bytes())), bytes - new_bytes, kHole);
    }
    return moved;
}

int program_mprotect(const MappingCalls& next, void* address, std::size_t bytes, int protection) {
    constexpr int kOpen = PROT_READ | PROT_WRITE;
    int result = next.mprotect(address, bytes, protection);
    if ((protection & kOpen) != kOpen) note_private_change(address, bytes);
    if (result != 0 || !touches_segment(address, bytes)) return result;
    forget_changes(address, bytes, kShut | kReadable);
    if ((protection & kOpen) != kOpen)
        note_change(address, bytes, (protection & PROT_READ) != 0 ? kShut | kReadable : kShut);
    return result;
}

// The kernel drops the bytes of private memory by MADV_DONTNEED and MADV_FREE, and leaves those of shared
// memory; MADV_REMOVE it refuses for private memory.
int program_madvise(const MappingCalls& next, void* address, std::size_t bytes, int advice) {
    constexpr int kDontNeedLocked = 24;  // MADV_DONTNEED_LOCKED, which older headers lack
    bool drops = advice == MADV_DONTNEED || advice == MADV_FREE || advice == kDontNeedLocked;
    if (!drops && advice != MADV_REMOVE) return next.madvise(address, bytes, advice);
    if (!touches_segment(address, bytes) || own().bytes == 0 || is_all(address, bytes, true))
        return next.madvise(address, bytes, advice);
    if (advice == MADV_REMOVE) {
        errno = EINVAL;
        return -1;
    }
    int result = next.madvise(address, bytes, advice == MADV_FREE ? MADV_DONTNEED : advice);
    if (result == 0 || errno == ENOMEM) drop_pages(address, bytes);
    return result;
}

void* program_shmat(const MappingCalls& next, int id, const void* address, int flags) {
    shmid_ds facts{};
    if ((flags & SHM_REMAP) == 0 || address == nullptr || shmctl(id, IPC_STAT, &facts) != 0)
        return next.shmat(id, address, flags);
    note_private_change(address, facts.shm_segsz);
    if (!touches_segment(address, facts.shm_segsz)) return next.shmat(id, address, flags);
    Noted noted(address, facts.shm_segsz, kReplaced);
    return noted.end(next.shmat(id, address, flags));
}

// The size of the detached memory is not known any more; it reached to the next page of the segment's, at
// most.
int program_shmdt(const MappingCalls& next, const void* address) {
    int result = next.shmdt(address);
    if (result != 0 || !touches_segment(address, 1)) return result;
    PageRun run = run_at(address, carvable().base + carvable().bytes);
    if (run.changes == kReplaced) note_change(run.begin, base::index(run.end - run.begin), kHole);
    return result;
}

int program_remap_file_pages(const MappingCalls& next, void* address, std::size_t bytes, int protection,
                             std::size_t page, int flags) {
    note_private_change(address, bytes);
    if (!touches_segment(address, bytes))
        return next.remap_file_pages(address, bytes, protection, page, flags);
    Noted noted(address, bytes, kReplaced);
    return noted.end(next.remap_file_pages(address, bytes, protection, page, flags));
}

}  // namespace coco::heap
