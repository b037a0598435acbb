// SPDX-License-Identifier: BSD-3-Clause
#include "heap/fork.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/bits.h"
#include "base/log.h"
#include "heap/copy_written.h"
#include "heap/kept.h"
#include "heap/outside.h"
#include "heap/overlays.h"
#include "heap/own_segment.h"
#include "heap/segment.h"
#include "heap/spans.h"
#include "os/clock.h"
#include "os/cpu.h"
#include "os/next_calls.h"
#include "os/own_mappings.h"
#include "os/shared_memory.h"

namespace coco::heap {
namespace {

// A child that is stopped (by a debugger, say) in the midst of copying holds its parent up this long at most.
constexpr std::uint64_t kPatience_ns = 600'000'000'000u;

// Relaxed: a thread that must not miss it has used the allocator itself; others ask whether there is anything to do.
constinit std::atomic<bool> g_guarded{false};
ForkHandler g_allocator_prepare, g_allocator_parent, g_allocator_child;
// The child writes a byte when its copy is complete; its death closes the pipe. Guarded by the span lock.
int g_pipe[2] = {-1, -1};

void close_pipe() {
    for (int& fd : g_pipe) {
        if (fd >= 0) close(fd);
        fd = -1;
    }
}

void prepare() {
    lock_outside();
    leave_adopted_stack();
    g_allocator_prepare();
    lock_kept();
    lock_spans();
    if (own().bytes == 0) return;
    int saved = errno;
    if (pipe2(g_pipe, O_CLOEXEC) != 0) {
        g_pipe[0] = g_pipe[1] = -1;
        COCO_LOG(error, "fork: no pipe to wait for the child's copy of the heap: errno "
                            << errno << "; the child may see later writes of this process");
    }
    errno = saved;
}

void wait_for_copy() {
    close(g_pipe[1]);
    g_pipe[1] = -1;
    std::uint64_t end = os::now_ns() + kPatience_ns;
    pollfd readable{g_pipe[0], POLLIN, 0};
    while (poll(&readable, 1, 1000) <= 0)
        if (os::now_ns() > end) {
            COCO_LOG(error, "fork: the child does not complete its copy of the heap; going on without it");
            break;
        }
}

void parent() {
    int saved = errno;
    if (g_pipe[0] >= 0) wait_for_copy();
    close_pipe();
    errno = saved;
    unlock_spans();
    unlock_kept();
    g_allocator_parent();
    unlock_outside();
}

// Maps by the system call itself: libraries that watch memory (UCX) patch libc's functions with ones that take
// locks, which another thread may have held at the fork; and UCX's mremap loses the new address.
std::byte* raw_map(void* at, std::uint64_t bytes, int protection, int flags) {
    void* mapped = os::bare_calls().mmap(at, bytes, protection,
                                         flags | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

// Makes private, in the order of addresses, those pieces of the range where the segment is still mapped.
class Privatizer {
  public:
    Privatizer(const Segment& segment, std::byte* room, std::uint64_t end)
        : segment_(segment), room_(room), end_(end), fd_(is_own_descriptor(segment.fd) ? segment.fd : -1) {}

    // A mapping of the program's over the segment stays, noted or not (it is not noted where it went round libc).
    bool all() {
        os::MappingList list;
        os::Mapping mapping;
        auto base = reinterpret_cast<std::uint64_t>(segment_.base);
        while (list.next(mapping) == os::Told::mapping && mapping.begin < base + end_) {
            if (mapping.end <= base) continue;
            std::uint64_t begin = mapping.begin > base ? mapping.begin - base : 0;
            std::uint64_t stop = std::min(mapping.end - base, end_);
            if (!unmapped_to(begin)) return false;
            if (is_own_mapping(mapping) && !(replace(begin, stop) && shut(begin, stop, mapping.protection)))
                return false;
            done_ = stop;
        }
        return unmapped_to(end_);
    }

  private:
    // Goes on to `end` where nothing is mapped, as the program has kept it from its children (MADV_DONTFORK)
    // or has unmapped it, or where mappings cannot be read.
    bool unmapped_to(std::uint64_t end) {
        const std::byte* stop = segment_.base + end;
        for (PageRun run = run_at(segment_.base + done_, stop); done_ < end; run = run_at(run.end, stop)) {
            std::uint64_t run_end = std::min(static_cast<std::uint64_t>(run.end - segment_.base), end);
            if ((run.changes & (kGone | kPrivate)) == 0 && !replace(done_, run_end)) return false;
            done_ = run_end;
        }
        return true;
    }
    bool replace(std::uint64_t begin, std::uint64_t end) {
        if (begin == end) return true;
        std::uint64_t bytes = end - begin;
        return copy_written(fd_, begin, bytes, segment_.base + begin, room_ + begin, true) &&
               os::bare_calls().mremap(room_ + begin, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                                       segment_.base + begin) == segment_.base + begin;
    }
    bool shut(std::uint64_t begin, std::uint64_t end, int protection) {
        constexpr int kOpen = PROT_READ | PROT_WRITE;
        return (protection & kOpen) == kOpen ||
               os::bare_calls().mprotect(segment_.base + begin, end - begin, protection) == 0;
    }

    const Segment& segment_;
    std::byte* room_;
    std::uint64_t end_, done_ = 0;
    int fd_;
};

// Puts all that was ever carved of the heap into private memory at the same addresses, with nothing accessible
// beyond, so that the child is charged for no more (strict overcommit, RLIMIT_DATA).
bool make_private(const Segment& segment) {
    std::uint64_t end = base::round_up(spans_end(), os::page_bytes());
    // Huge pages can be moved where both places lie alike.
    constexpr std::uint64_t kHuge = 2u << 20;
    std::byte* wide = raw_map(nullptr, end + kHuge, PROT_READ | PROT_WRITE, 0);
    if (wide == nullptr) return false;
    std::byte* room =
        wide +
        (reinterpret_cast<std::uint64_t>(segment.base) - reinterpret_cast<std::uint64_t>(wide)) % kHuge;
    if (!Privatizer(segment, room, end).all()) return false;
    return end == segment.bytes ||
           raw_map(segment.base + end, segment.bytes - end, PROT_NONE, MAP_FIXED) != nullptr;
}

void child() {
    int saved = errno;
    if (own().bytes != 0) {
        if (!make_private(own()) || !privatize_outside(own())) {
            COCO_LOG(error,
                     "fork: cannot copy the heap for the child: errno " << errno << "; the child ends");
            _exit(127);
        }
        if (g_pipe[1] >= 0) (void)!write(g_pipe[1], "", 1);
        close_pipe();
        forget_segments();
    }
    errno = saved;
    unlock_spans();
    unlock_kept();
    g_allocator_child();
    unlock_outside();
}

}  // namespace

int guard_forks(ForkHandler allocator_prepare, ForkHandler allocator_parent, ForkHandler allocator_child) {
    g_allocator_prepare = allocator_prepare;
    g_allocator_parent = allocator_parent;
    g_allocator_child = allocator_child;
    const int error = pthread_atfork(prepare, parent, child);
    if (error == 0) g_guarded.store(true, std::memory_order_relaxed);
    return error;
}

bool forks_are_guarded() { return g_guarded.load(std::memory_order_relaxed); }

}  // namespace coco::heap
