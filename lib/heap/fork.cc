// SPDX-License-Identifier: BSD-3-Clause
#include "heap/fork.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/bits.h"
#include "base/log.h"
#include "heap/kept.h"
#include "heap/own_segment.h"
#include "heap/segment.h"
#include "heap/spans.h"
#include "os/clock.h"
#include "os/shared_memory.h"

namespace coco::heap {
namespace {

// A child that is stopped (by a debugger, say) in the midst of copying holds its parent up this long at most.
constexpr std::uint64_t kPatience_ns = 600'000'000'000u;

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
}

// By the system calls themselves: libraries that watch memory (UCX) patch libc's functions with ones that
// take locks, which another thread may have held at the fork; and that mremap loses the new address.
std::byte* raw_map(void* at, std::uint64_t bytes, int protection, int flags) {
    long mapped =
        syscall(SYS_mmap, at, bytes, protection, flags | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
    return mapped == -1 ? nullptr : reinterpret_cast<std::byte*>(mapped);
}

// From the file where possible: what is mapped may be out of reach, as the program may have forbidden access
// to some pages (mprotect), or kept them from its children (MADV_DONTFORK, as InfiniBand's library does).
bool copy_range(const Segment& segment, int fd, std::byte* copy, std::uint64_t begin, std::uint64_t end) {
    if (fd < 0) std::memcpy(copy + begin, segment.base + begin, end - begin);
    while (fd >= 0 && begin < end) {
        ssize_t n = pread(fd, copy + begin, end - begin, static_cast<off_t>(begin));
        if (n <= 0) return false;
        begin += static_cast<std::uint64_t>(n);
    }
    return true;
}

// Copies what was ever written of [0, end) of the segment to the same offsets of `copy`.
bool copy_written(const Segment& segment, std::byte* copy, std::uint64_t end) {
    int fd = is_own_descriptor(segment.fd) ? segment.fd : -1;
    std::uint64_t from = 0, begin = 0, stop = 0;
    while (os::next_written(fd, from, end, begin, stop)) {
        if (!copy_range(segment, fd, copy, begin, stop)) return false;
        from = stop;
    }
    return true;
}

// What was ever carved of the heap, in private memory at the same addresses; nothing accessible beyond, so
// that the child is charged for no more (strict overcommit, RLIMIT_DATA).
bool make_private(const Segment& segment) {
    std::uint64_t end = base::round_up(spans_end(), os::kPageBytes);
    std::byte* room = raw_map(nullptr, end, PROT_READ | PROT_WRITE, 0);
    if (room == nullptr || !copy_written(segment, room, end)) return false;
    if (syscall(SYS_mremap, room, end, end, MREMAP_MAYMOVE | MREMAP_FIXED, segment.base) !=
        reinterpret_cast<long>(segment.base))
        return false;
    return end == segment.bytes ||
           raw_map(segment.base + end, segment.bytes - end, PROT_NONE, MAP_FIXED) != nullptr;
}

void child() {
    int saved = errno;
    if (own().bytes != 0) {
        if (!make_private(own())) {
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
}

}  // namespace

int guard_forks(ForkHandler allocator_prepare, ForkHandler allocator_parent, ForkHandler allocator_child) {
    g_allocator_prepare = allocator_prepare;
    g_allocator_parent = allocator_parent;
    g_allocator_child = allocator_child;
    return pthread_atfork(prepare, parent, child);
}

}  // namespace coco::heap
