// SPDX-License-Identifier: BSD-3-Clause
//
// The system as jemalloc sees it. private_jemalloc.sh points jemalloc's calls of mmap, munmap, madvise, ...
// here, so every page of it but those of private arenas (arenas.cc) lies on the own segment from the first
// allocation on, and no part of jemalloc's inside is relied upon. What free calls keeps errno.
#include "heap/system.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/index.h"
#include "base/kept_errno.h"
#include "base/kernel.h"
#include "base/lock.h"
#include "heap/gone.h"
#include "heap/overlays.h"
#include "heap/own_segment.h"
#include "heap/parts.h"
#include "heap/segment.h"
#include "os/clock.h"
#include "os/cpu.h"
#include "os/process.h"
#include "os/shared_memory.h"

#define COCO_FROM_JEMALLOC extern "C" __attribute__((visibility("hidden")))

// narenas: fixed, as counting CPUs by itself makes jemalloc write to stderr in bound ranks. retain: what is
// freed stays carved, its pages go back by punching holes. oversize_threshold: neighbouring free blocks of so
// many bytes together are given back at once; smaller ones after dirty_decay_ms, gradually: to touch 200 MB
// anew costs 1 % of a loop that takes so long for a turn. tcache_max: message buffers are commonly below.
// tcache_nslots_large: each thread may hold so many of each size, 13 MiB if it had all. tcache_gc_incr_bytes:
// looking for unused ones costs 10 ns, at 64 KiB (the default) in every pair of malloc and free of a message
// buffer. zero_realloc: as glibc.
COCO_FROM_JEMALLOC const char* coco_je_malloc_conf;
const char* coco_je_malloc_conf =
    "narenas:8,background_thread:false,retain:true,dss:disabled,oversize_threshold:33554432,"
    "dirty_decay_ms:5000,muzzy_decay_ms:0,tcache_max:262144,tcache_nslots_large:8,"
    "tcache_gc_incr_bytes:1048576,metadata_thp:disabled,thp:default,zero_realloc:free,abort:false";

namespace coco::heap {
namespace {

// Offset of an address in the carvable range; at or beyond its size if it is not there.
std::uint64_t carvable_offset(const void* address) {
    return reinterpret_cast<std::uint64_t>(address) - reinterpret_cast<std::uint64_t>(carvable().base);
}

}  // namespace

bool is_carvable(const void* address) { return carvable_offset(address) < carvable().bytes; }

std::byte* carve(std::uint64_t bytes, std::uint64_t alignment) {
    // Large spans begin at a huge page. What is skipped for that is lost.
    const std::uint64_t natural = bytes >= os::kHugePageBytes ? os::kHugePageBytes : span_unit();
    const std::uint64_t offset = take_own(kHeap, bytes, std::max(natural, alignment));
    if (offset == 0) return nullptr;
    if (must_reserve_pages() && !os::reserve_pages(own().fd, offset, bytes)) {
        give_own(offset, bytes);
        return nullptr;
    }
    return carvable().base + offset;
}

int give_up_pages(void* address, std::uint64_t bytes) {
    if (is_shared(address)) return punch_shared(address, bytes) ? 0 : -1;
    constexpr int kDontNeedLocked = 24;  // MADV_DONTNEED_LOCKED, which older headers lack
    note_gone(address, bytes);
    if (!os::advice_is_heeded()) return -1;
    return kernel::madvise(address, bytes, MADV_DONTNEED) == 0
               ? 0
               : kernel::madvise(address, bytes, kDontNeedLocked);
}

namespace {

// A null hint takes a span, or private memory; a fixed one commits or decommits what was taken.
void* map(void* hint, std::size_t bytes, int protection, int flags) {
    COCO_CHECK(bytes != 0, "the allocator maps something");
    if ((flags & MAP_FIXED) != 0 && is_carvable(hint)) {  // commit or decommit of what is carved
        if (protection != PROT_NONE)
            begin_use(hint, bytes, Pages::huge_later);
        else if (!end_use(hint, bytes))
            return MAP_FAILED;
        return hint;
    }
    if (hint == nullptr)
        if (void* carved = carve(bytes, span_unit())) {
            // The allocator's own records, of which it has more room than it uses.
            if (protection != PROT_NONE) begin_use(carved, bytes, Pages::records);
            return carved;
        }
    if ((flags & MAP_FIXED) != 0) {
        // Private memory is purged instead, as each hole may be a mapping more. Where the kernel refuses
        // access, all stays.
        const bool done = protection != PROT_NONE && kernel::mprotect(hint, bytes, protection) == 0;
        return done ? hint : MAP_FAILED;
    }
    // The kernel refuses what the machine does not have, as it does for the C library's malloc. A page stays
    // free behind each mapping: jemalloc would join it with another arena's, which may have given its first
    // part back (arenas.cc).
    const std::uint64_t page = os::page_bytes();
    void* mapped = kernel::mmap(hint, bytes + page, protection, flags & ~MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return mapped;
    kernel::munmap(static_cast<std::byte*>(mapped) + bytes, page);
    watch_private(mapped, bytes);
    return mapped;
}

int unmap(void* address, std::size_t bytes) {
    if (is_carvable(address)) {
        // Of what it has just mapped; what was counted of it as used stays counted, which does no harm.
        if (!punch_shared(address, bytes)) std::memset(address, 0, bytes);
        give_own(carvable_offset(address), bytes);
        return 0;
    }
    note_gone(address, bytes);
    return kernel::munmap(address, bytes);
}

int advise(void* address, std::size_t bytes, int advice) {
    if (advice == MADV_DONTNEED) return give_up_pages(address, bytes);
    // The kernel has no lazy freeing of shared memory.
    if (is_shared(address) && advice == MADV_FREE) return -1;
    return kernel::madvise(address, bytes, advice);
}

}  // namespace
}  // namespace coco::heap

COCO_FROM_JEMALLOC void* coco_je_system_mmap(void* hint, std::size_t bytes, int protection, int flags, int,
                                             off_t) {
    const coco::base::KeptErrno kept;
    return coco::heap::map(hint, bytes, protection, flags);
}
COCO_FROM_JEMALLOC int coco_je_system_munmap(void* address, std::size_t bytes) {
    const coco::base::KeptErrno kept;
    return coco::heap::unmap(address, bytes);
}
COCO_FROM_JEMALLOC int coco_je_system_madvise(void* address, std::size_t bytes, int advice) {
    const coco::base::KeptErrno kept;
    return coco::heap::advise(address, bytes, advice);
}
COCO_FROM_JEMALLOC int coco_je_system_mprotect(void* address, std::size_t bytes, int protection) {
    return coco::kernel::mprotect(address, bytes, protection);
}
COCO_FROM_JEMALLOC int coco_je_system_clock_gettime(clockid_t clock, timespec* time) {
    return coco::os::read_clock(clock, time);
}
// It would ask the kernel, by a file, whether memory may be taken before it is there. It is told that this is
// not so: then it says by mmap() which pages it begins and ceases to use.
COCO_FROM_JEMALLOC int coco_je_system_open(const char*, int, ...) {
    errno = ENOENT;
    return -1;
}
COCO_FROM_JEMALLOC int coco_je_system_close(int) { return 0; }
COCO_FROM_JEMALLOC long coco_je_system_syscall(long number, long a, long b, long c) {
    if (number == SYS_write)
        return coco::kernel::write(static_cast<int>(a), reinterpret_cast<void*>(b), coco::base::index(c));
    errno = ENOENT;
    return -1;
}
COCO_FROM_JEMALLOC long coco_je_system_sysconf(int name) {
    return static_cast<long>(name == _SC_PAGESIZE ? coco::os::page_bytes() : coco::os::online_cpus());
}
COCO_FROM_JEMALLOC int coco_je_system_sched_getaffinity(pid_t, std::size_t bytes, cpu_set_t* mask) {
    CPU_ZERO_S(bytes, mask);
    return coco::kernel::sched_getaffinity(bytes, mask) < 0 ? -1 : 0;
}
COCO_FROM_JEMALLOC pid_t coco_je_system_getpid() { return coco::kernel::getpid(); }
// A mutex that is all zeros, as static ones are, is a lock that is free.
static_assert(sizeof(coco::base::Lock) <= sizeof(pthread_mutex_t));
static coco::base::Lock& lock_of(pthread_mutex_t* mutex) {
    return *reinterpret_cast<coco::base::Lock*>(mutex);
}
COCO_FROM_JEMALLOC int coco_je_system_pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t*) {
    new (mutex) coco::base::Lock;
    return 0;
}
COCO_FROM_JEMALLOC int coco_je_system_pthread_mutex_lock(pthread_mutex_t* mutex) {
    lock_of(mutex).lock();
    return 0;
}
COCO_FROM_JEMALLOC int coco_je_system_pthread_mutex_trylock(pthread_mutex_t* mutex) {
    return lock_of(mutex).try_lock() ? 0 : EBUSY;
}
COCO_FROM_JEMALLOC int coco_je_system_pthread_mutex_unlock(pthread_mutex_t* mutex) {
    lock_of(mutex).unlock();
    return 0;
}
// Of background threads, which are off, as is all that waits for the condition.
COCO_FROM_JEMALLOC int coco_je_system_pthread_cond_init(pthread_cond_t*, const pthread_condattr_t*) {
    return 0;
}
// Settings of another jemalloc (MALLOC_CONF, /etc/malloc.conf) are not for this one, and its only dlsym is
// for background threads, which are off: dlsym allocates.
COCO_FROM_JEMALLOC char* coco_je_system_secure_getenv(const char*) { return nullptr; }
COCO_FROM_JEMALLOC long coco_je_system_readlink(const char*, char*, std::size_t) { return -1; }
COCO_FROM_JEMALLOC void* coco_je_system_dlsym(void*, const char*) { return nullptr; }
