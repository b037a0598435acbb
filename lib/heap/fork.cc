// SPDX-License-Identifier: BSD-3-Clause
#include "heap/fork.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>

#include "base/bits.h"
#include "base/check.h"
#include "base/index.h"
#include "base/kept_errno.h"
#include "base/kernel.h"
#include "base/lock.h"
#include "base/log.h"
#include "heap/arenas.h"
#include "heap/gone.h"
#include "heap/heap.h"
#include "heap/overlays.h"
#include "heap/own_segment.h"
#include "heap/parts.h"
#include "heap/segment.h"
#include "os/clock.h"
#include "os/cpu.h"
#include "os/futex.h"
#include "os/shared_memory.h"

namespace coco::heap {
namespace {

// A child that is stopped (by a debugger, say) in the midst of copying holds its parent up this long at most.
constexpr std::uint64_t kPatience_ns = 600'000'000'000u;
constexpr std::uint64_t kLook_ns = 50'000'000u;  // so often it is asked whether the child lives

// Relaxed: a thread that must not miss it has used the allocator itself; others ask whether there is anything
// to do.
constinit std::atomic<bool> g_guarded{false};
using ForkHandler = void (*)();
ForkHandler g_allocator_prepare, g_allocator_parent, g_allocator_child;
// What the child says to its parent when its copy is complete: a word in a page of System V's shared memory.
// The kernel counts who has that page: a fork that fails, or a child that dies, leaves the parent alone with
// it. No descriptor is needed, of which a program may have none left. Guarded by g_taking_lock.
constinit std::atomic<std::uint32_t>* g_copied = nullptr;  // null: there is no such page
constinit int g_copied_id = -1;

void open_copied() {
    g_copied_id = static_cast<int>(
        kernel::call(SYS_shmget, IPC_PRIVATE, static_cast<long>(os::page_bytes()), S_IRUSR | S_IWUSR));
    void* page = g_copied_id >= 0 ? kernel::shmat(g_copied_id, nullptr, 0) : nullptr;
    if (g_copied_id >= 0)
        kernel::call(SYS_shmctl, g_copied_id, IPC_RMID);  // it goes with whoever has it last
    g_copied = page != nullptr && page != MAP_FAILED ? new (page) std::atomic<std::uint32_t>{0} : nullptr;
    if (g_copied == nullptr)
        COCO_LOG(error, "fork: no System V shared memory to wait for the child's copy of the heap: error "
                            << -g_copied_id << "; the child may see later writes of this process");
}

void close_copied() {
    if (g_copied != nullptr) kernel::shmdt(g_copied);
    g_copied = nullptr;
}

bool is_child_alive() {
    shmid_ds facts{};
    return kernel::call(SYS_shmctl, g_copied_id, IPC_STAT, reinterpret_cast<long>(&facts)) != 0 ||
           facts.shm_nattch > 1;
}

// Of all that changes the heap's pages below the allocator.
base::Lock* const kLocks[] = {&g_parts_lock, &g_taking_lock, &g_gone_lock};

void prepare() {
    if (own().bytes != 0) purge();  // so that it is not copied
    g_arenas_lock.lock();
    g_allocator_prepare();
    for (base::Lock* lock : kLocks) lock->lock();
    if (own().bytes == 0) return;
    const base::KeptErrno kept;
    open_copied();
}

void unlock_all(ForkHandler unlock_allocator) {
    for (base::Lock* lock : kLocks) lock->unlock();
    unlock_allocator();
    g_arenas_lock.unlock();
}

void wait_for_copy() {
    const std::uint64_t end = os::now_ns() + kPatience_ns;
    // Acquire: pairs with end_copy().
    while (g_copied->load(std::memory_order_acquire) == 0 && is_child_alive()) {
        os::futex_wait(*g_copied, 0, kLook_ns);
        if (os::now_ns() > end) {
            COCO_LOG(error, "fork: the child does not complete its copy of the heap; going on without it");
            break;
        }
    }
}

void end_copy() {
    if (g_copied == nullptr) return;
    g_copied->store(1, std::memory_order_release);
    os::futex_wake_all(*g_copied);
    close_copied();
}

void parent() {
    const base::KeptErrno kept;
    if (g_copied != nullptr) wait_for_copy();
    close_copied();
    unlock_all(g_allocator_parent);
}

// Maps by the system call itself: libraries that watch memory (UCX) patch libc's functions with ones that
// take locks, which another thread may have held at the fork; and UCX's mremap loses the new address.
std::byte* raw_map(void* at, std::uint64_t bytes, int protection, int flags) {
    void* mapped =
        kernel::mmap(at, bytes, protection, flags | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

// From the file where possible: mapped pages may be out of reach, as the program may have forbidden access to
// some (mprotect), or kept them from its children (MADV_DONTFORK, as InfiniBand's library does).
bool read_all(int fd, std::uint64_t offset, std::uint64_t bytes, std::byte* target) {
    while (bytes != 0) {
        const ssize_t n = kernel::pread(fd, target, bytes, offset);
        if (n <= 0) return false;
        offset += static_cast<std::uint64_t>(n);
        target += n;
        bytes -= static_cast<std::uint64_t>(n);
    }
    return true;
}

// Puts what the segment still shows of the heap into private memory at the same addresses.
class Privatizer {
  public:
    explicit Privatizer(const Segment& segment)
        : segment_(segment), written_(is_own_descriptor(segment.fd) ? segment.fd : -1) {}

    // A mapping of the program's over the segment stays, and pages that it has shut stay shut.
    bool all(std::uint64_t end) {
        COCO_CHECK(end <= segment_.bytes, "what was carved lies in the segment");
        const std::byte* stop = segment_.base + end;
        for (PageRun run = run_at(segment_.base, stop); run.begin != run.end; run = run_at(run.end, stop)) {
            if ((run.changes & kGone) != 0) continue;
            const auto begin = static_cast<std::uint64_t>(run.begin - segment_.base),
                       run_end = static_cast<std::uint64_t>(run.end - segment_.base);
            if (!replace(begin, std::min(run_end, end)) || !shut(run)) return false;
        }
        return true;
    }

  private:
    // In place, so that no more address space is needed than the parent has. What cannot be read from the
    // file, and the stack that this runs on, is copied before it is replaced.
    bool replace(std::uint64_t begin, std::uint64_t end) {
        std::byte* at = segment_.base + begin;
        if (written_.fd() < 0 || has_own_frame(at, segment_.base + end)) return replace_by_pieces(begin, end);
        return begin == end || (raw_map(at, end - begin, PROT_READ | PROT_WRITE, MAP_FIXED) != nullptr &&
                                copy_written(begin, end - begin, at));
    }
    static bool has_own_frame(const std::byte* begin, const std::byte* end) {
        const auto* frame = static_cast<const std::byte*>(__builtin_frame_address(0));
        return begin <= frame && frame < end;
    }
    bool replace_by_pieces(std::uint64_t begin, std::uint64_t end) {
        constexpr std::uint64_t kPiece = 64u << 20;
        for (; begin < end; begin += std::min(kPiece, end - begin))
            if (!replace_piece(begin, std::min(kPiece, end - begin))) return false;
        return true;
    }
    bool replace_piece(std::uint64_t begin, std::uint64_t bytes) {
        // Huge pages can be moved where both places lie alike.
        std::byte* wide = raw_map(nullptr, bytes + os::kHugePageBytes, PROT_READ | PROT_WRITE, 0);
        if (wide == nullptr) return false;
        const std::uint64_t skipped =
            (begin - reinterpret_cast<std::uint64_t>(wide)) % os::kHugePageBytes;  // segments are aligned
        std::byte *room = wide + skipped, *at = segment_.base + begin;
        const bool done = copy_written(begin, bytes, room) &&
                          kernel::mremap(room, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at;
        if (skipped != 0) kernel::munmap(wide, skipped);
        kernel::munmap(room + bytes, os::kHugePageBytes - skipped);
        return done;
    }
    static bool shut(const PageRun& run) {
        return (run.changes & kShut) == 0 ||
               kernel::mprotect(run.begin, base::index(run.end - run.begin),
                                (run.changes & kReadable) != 0 ? PROT_READ : PROT_NONE) == 0;
    }
    // Copies what was ever written of a range to `target`, which reads as zeros. Huge pages are asked for
    // where whole ones are copied, which takes a fifth of the time.
    bool copy_written(std::uint64_t offset, std::uint64_t bytes, std::byte* target) {
        if (written_.fd() < 0) {
            std::memcpy(target, segment_.base + offset, bytes);
            return true;
        }
        const std::uint64_t end = offset + bytes;
        for (std::uint64_t at = offset; at < end;) {
            const auto [from, stop] = written_.next(at, end);
            at = stop;
            if (from == stop) break;
            os::ask_for_huge_pages(target + (from - offset), stop - from);
            if (!read_all(written_.fd(), from, stop - from, target + (from - offset))) return false;
        }
        return true;
    }

    const Segment& segment_;
    os::Written written_;
};

// No handler may see the heap in between.
class WithoutSignals {
  public:
    WithoutSignals() { change(~std::uint64_t{0}); }
    ~WithoutSignals() { change(before_); }
    WithoutSignals(const WithoutSignals&) = delete;
    WithoutSignals& operator=(const WithoutSignals&) = delete;

  private:
    void change(std::uint64_t set) {
        kernel::call(SYS_rt_sigprocmask, SIG_SETMASK, reinterpret_cast<long>(&set),
                     reinterpret_cast<long>(&before_), sizeof set);
    }
    std::uint64_t before_ = 0;
};

void child() {
    const base::KeptErrno kept;
    if (own().bytes != 0) {
        const WithoutSignals held;
        const std::uint64_t carved_end = base::round_up(taken_end(), os::page_bytes());
        if (!Privatizer(own()).all(carved_end)) {
            COCO_LOG(error,
                     "fork: cannot copy the heap for the child: errno " << errno << "; the child ends");
            _exit(127);
        }
        forget_segments(carved_end);
        end_copy();
    }
    unlock_all(g_allocator_child);
}

// Registers our handlers around the allocator's: its locks are held while the copy is made. Returns: 0 or an
// errno.
int guard_forks(ForkHandler allocator_prepare, ForkHandler allocator_parent, ForkHandler allocator_child) {
    COCO_CHECK(allocator_prepare != nullptr && allocator_parent != nullptr && allocator_child != nullptr,
               "the allocator has handlers of its own around a fork");
    COCO_CHECK(!g_guarded.load(std::memory_order_relaxed), "handlers around a fork are registered once");
    g_allocator_prepare = allocator_prepare;
    g_allocator_parent = allocator_parent;
    g_allocator_child = allocator_child;
    const int error = pthread_atfork(prepare, parent, child);
    if (error == 0) g_guarded.store(true, std::memory_order_relaxed);
    return error;
}

}  // namespace

bool forks_are_guarded() { return g_guarded.load(std::memory_order_relaxed); }

}  // namespace coco::heap

// jemalloc calls this when it is first used (private_jemalloc.sh).
extern "C" [[gnu::visibility("hidden")]] int coco_je_system_pthread_atfork(void (*prepare)(),
                                                                           void (*parent)(),
                                                                           void (*child)()) {
    return coco::heap::guard_forks(prepare, parent, child);
}
