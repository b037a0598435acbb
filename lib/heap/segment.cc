// SPDX-License-Identifier: BSD-3-Clause
#include "heap/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>

#include "base/bits.h"
#include "base/env.h"
#include "base/kernel.h"
#include "base/lock.h"
#include "base/log.h"
#include "heap/gone.h"
#include "heap/malloc_family.h"
#include "heap/overlays.h"
#include "heap/own_segment.h"
#include "heap/segment_size.h"
#include "heap/spans.h"
#include "os/cpu.h"
#include "os/numa.h"
#include "os/own_mappings.h"
#include "os/process.h"
#include "os/shared_memory.h"

namespace coco::heap {
namespace {

// The header at the start of every segment, which a peer checks before it believes in the segment.
struct Header {
    std::uint64_t magic;
    std::uint64_t cookie;
    std::uint64_t bytes;
    std::int32_t pid;
    std::uint32_t version;
};
constexpr std::uint64_t kMagic = 0x6f636f6362696c00u;  // "\0libcoco"
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kSmallest = 2 * kFirstSpan;
// Behind the heap: room for the library itself, and the annex.
constexpr std::uint64_t kRoomBytes = std::uint64_t{24} << 30, kAnnexBytes = std::uint64_t{32} << 30;

constinit Segment g_own;
constinit SegmentId g_id{};
constinit Range g_carvable{}, g_annex{};
// Where the rest of the room begins. Relaxed: it only deals out addresses, whose pages nobody has written yet; that
// there is a room is seen by g_made.
constinit std::atomic<std::uint64_t> g_room_at{0};
constinit bool g_on_mount = false;
constinit dev_t g_device = 0;
constinit ino_t g_inode = 0;
constinit base::Lock g_making;
constinit std::atomic<bool> g_made{false};

struct Peer {
    std::uint64_t cookie;
    std::byte* base;
    std::uint64_t bytes;
};
constexpr int kMostPeers = 4096;
constinit Peer g_peers[kMostPeers] = {};
constinit int g_peer_count = 0;
constinit std::uint64_t g_peers_bytes = 0;
constinit base::Lock g_peers_lock;
constinit Refusal g_refusal;  // written while the segment is made, then under g_peers_lock

std::uint64_t address_space_limit() {
    rlimit limit{};
    return kernel::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur
                                                                                        : UINT64_MAX;
}

std::uint64_t file_size_limit() {
    rlimit limit{};
    return kernel::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur
                                                                                           : UINT64_MAX;
}

// A wrong COCO_HEAP_LIMIT counts as unset here; MPI_Init refuses it.
std::uint64_t wanted_bytes() {
    if (!wants_shared_heap()) return 0;
    std::uint64_t asked = 0;
    base::parse_bytes(base::env("COCO_HEAP_LIMIT"), asked);
    struct sysinfo memory {};
    if (kernel::sysinfo(&memory) != 0) return 0;
    return segment_bytes({.memory_bytes = memory.totalram * memory.mem_unit,
                          .asked_bytes = asked,
                          .node_ranks = os::node_ranks(),
                          .address_space_bytes = address_space_limit(),
                          .file_bytes = file_size_limit()});
}

// The size of what lies behind the heap: 0 where any limit could meet it.
std::uint64_t bytes_behind(const os::MemoryObject& object) {
    rlimit files{};
    bool bounded = kernel::getrlimit(RLIMIT_FSIZE, &files) != 0 || files.rlim_cur != RLIM_INFINITY ||
                   address_space_limit() != UINT64_MAX;
    return bounded || object.on_mount ? 0 : kRoomBytes + kAnnexBytes;
}

// /dev/shm is small in many containers.
std::uint64_t within_mount(int fd, std::uint64_t bytes) {
    struct statfs mount {};
    if (kernel::fstatfs(fd, &mount) != 0) return bytes;
    const auto unit = static_cast<std::uint64_t>(mount.f_bsize);
    return std::min(bytes, mount_share_bytes(mount.f_blocks * unit, mount.f_bavail * unit, os::node_ranks()));
}

// heap_bytes: how many of the segment's bytes the heap may use.
bool publish(const os::MemoryObject& object, std::byte* base, std::uint64_t bytes, std::uint64_t heap_bytes) {
    if (object.on_mount && !os::reserve_pages(object.fd, 0, os::page_bytes())) return false;
    struct stat facts {};
    if (kernel::fstat(object.fd, &facts) != 0 || !watch_pages(base, bytes)) return false;
    g_device = facts.st_dev;
    g_inode = facts.st_ino;
    g_on_mount = object.on_mount;
    g_id = {os::host_identity(), os::random_cookie(), bytes, kernel::getpid(), object.fd};
    *reinterpret_cast<Header*>(base) = {kMagic, g_id.cookie, bytes, g_id.pid, kVersion};
    kernel::madvise(base, bytes, MADV_HUGEPAGE);
    kernel::madvise(base + kFirstSpan, bytes - kFirstSpan,
                    MADV_DONTDUMP);  // until a span reaches it: spans.cc
    g_carvable = {base, heap_bytes};
    if (bytes != heap_bytes) g_annex = {base + (bytes - kAnnexBytes), kAnnexBytes};
    g_room_at.store(heap_bytes, std::memory_order_relaxed);
    g_own = {base, bytes, object.fd};
    return true;
}

bool try_make(std::uint64_t bytes) {
    os::MemoryObject object = os::make_memory_object(bytes);
    if (object.fd < 0) return false;
    if (object.on_mount) bytes = within_mount(object.fd, bytes);
    const std::uint64_t all_bytes = bytes + bytes_behind(object);
    std::byte* base = bytes >= kSmallest ? os::map_object(object.fd, all_bytes) : nullptr;
    if (base != nullptr && kernel::ftruncate(object.fd, all_bytes) == 0 &&
        publish(object, base, all_bytes, bytes))
        return true;
    if (base != nullptr) os::unmap_object(base, all_bytes);
    kernel::close(object.fd);
    return false;
}

void make_own() {
    int saved = errno;
    std::uint64_t bytes = wanted_bytes();
    bool wanted = bytes != 0;
    while (bytes >= kSmallest && !try_make(bytes)) bytes = (bytes / 2) & ~(os::kHugePageBytes - 1);
    if (wanted && g_own.bytes == 0) {
        g_refusal = {"no shared memory of 4 MiB or more for the heap (memfd, /dev/shm)", 0, errno};
        COCO_LOG(info, "no shared heap: errno " << errno << "; allocation is private");
    }
    errno = saved;
}

// Whether the kernel can be asked about mappings, and answers rightly for the segment's first page, which no
// program is given.
bool kernel_tells() {
    enum { kUnasked, kTells, kDoesNot };
    static constinit std::atomic<int> answer{kUnasked};  // relaxed: nothing else goes with the answer
    if (answer.load(std::memory_order_relaxed) == kUnasked) {
        os::Mapping mapping;
        bool tells =
            os::mapping_at(reinterpret_cast<std::uint64_t>(g_own.base), mapping) == os::Told::mapping &&
            is_own_mapping(mapping);
        answer.store(tells ? kTells : kDoesNot, std::memory_order_relaxed);
    }
    return answer.load(std::memory_order_relaxed) == kTells;
}

// A process that has the owner's id sees what the owner has stored in the header: whatever brought the id from one
// process to the other has ordered the one after the other, and the kernel reads the pages that both map.
// Read through the descriptor: to touch a page of each mapping would cost each process page tables for each
// peer.
bool header_matches(int fd, const SegmentId& peer) {
    Header header{};
    if (kernel::pread(fd, &header, sizeof header, 0) != sizeof header) return false;
    return header.magic == kMagic && header.version == kVersion && header.cookie == peer.cookie &&
           header.bytes == peer.bytes && header.pid == peer.pid;
}

// error: 0 where no call has failed.
std::byte* refuse(const SegmentId& peer, const char* why, int error = 0) {
    COCO_LOG(info, "cannot map the heap of process " << peer.pid << ": " << why << ", errno " << error);
    g_refusal = {why, peer.pid, error};
    return nullptr;
}

std::byte* map_descriptor(const SegmentId& peer, int fd) {
    struct stat facts {};
    if (kernel::fstat(fd, &facts) != 0 || facts.st_size < 0 ||
        static_cast<std::uint64_t>(facts.st_size) != peer.bytes)
        return refuse(peer, "another size");
    if (!header_matches(fd, peer)) return refuse(peer, "not its segment");
    std::byte* base = os::map_object(fd, peer.bytes);
    if (base == nullptr) return refuse(peer, "no address space", ENOMEM);
    kernel::madvise(base, peer.bytes, MADV_DONTDUMP);
    kernel::madvise(base, peer.bytes, MADV_DONTFORK);
    kernel::madvise(base, peer.bytes, MADV_HUGEPAGE);
    return base;
}

std::byte* open_peer(const SegmentId& peer) {
    base::Text path;
    path << "/proc/" << peer.pid << "/fd/" << peer.fd << '\0';
    // Should the peer have put something else there (a terminal, a pipe), then opening it must do nothing.
    int fd = kernel::open(path.view().data(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return refuse(peer, "open of its descriptor in /proc", errno);
    std::byte* base = map_descriptor(peer, fd);
    kernel::close(fd);
    return base;
}

}  // namespace

const Segment& own() {
    // Acquire: pairs with the release below, so whoever sees g_made sees g_own.
    if (!g_made.load(std::memory_order_acquire)) {
        decide_malloc_family();  // which comes here, if the family is ours
        std::scoped_lock hold(g_making);
        if (!g_made.load(std::memory_order_relaxed)) make_own();
        g_made.store(true, std::memory_order_release);
    }
    return g_own;
}

SegmentId own_id() {
    own();
    return g_id;
}

bool is_shared(const void* address, std::size_t bytes) {
    std::uint64_t offset = offset_of(address);
    return offset < g_own.bytes && bytes <= g_own.bytes - offset && !is_changed(address, bytes, kGone) &&
           (bytes < kAskedBytesMin || !kernel_tells() ? !is_private(address, bytes)
                                                      : is_mapped_here(address, bytes));
}

bool is_mapped_here(const void* address, std::size_t bytes) {
    if (!kernel_tells()) return true;
    auto from = reinterpret_cast<std::uint64_t>(address);
    os::Mapping mapping;
    for (std::uint64_t end = from + bytes; from < end; from = mapping.end) {
        const os::Told told = os::mapping_at(from, mapping);
        if (told == os::Told::unknown)
            return !is_private(address, bytes);  // it cannot be asked any more: descriptors have run out, say
        if (told == os::Told::none || !is_own_mapping(mapping)) return false;
    }
    return true;
}

bool is_of_segment(const os::Mapping& mapping) {
    return mapping.shared && mapping.inode == g_inode && mapping.device == g_device;
}

bool is_own_mapping(const os::Mapping& mapping) {
    return is_of_segment(mapping) &&
           mapping.offset == mapping.begin - reinterpret_cast<std::uint64_t>(g_carvable.base);
}

std::uint64_t offset_of(const void* address) {
    return reinterpret_cast<std::uint64_t>(address) - reinterpret_cast<std::uint64_t>(g_own.base);
}

namespace {

// fd: the peer's descriptor, or -1: to be opened.
std::byte* find_or_map(const SegmentId& peer, int fd) {
    const Segment& mine = own();
    if (mine.bytes == 0 || peer.cookie == 0 || peer.host != g_id.host) return nullptr;
    if (peer.cookie == g_id.cookie) return mine.base;
    std::scoped_lock hold(g_peers_lock);
    for (int i = 0; i < g_peer_count; ++i)
        if (g_peers[i].cookie == peer.cookie) return g_peers[i].base;
    if (g_peer_count == kMostPeers) return refuse(peer, "too many peers");
    // The program keeps half of a bounded address space.
    if (peer.bytes >
        address_space_limit() / 2 - std::min(address_space_limit() / 2, mine.bytes + g_peers_bytes))
        return refuse(peer, "the address space is bounded", ENOMEM);
    std::byte* base = fd >= 0 ? map_descriptor(peer, fd) : open_peer(peer);
    if (base == nullptr) return nullptr;
    g_peers_bytes += peer.bytes;
    g_peers[g_peer_count++] = {peer.cookie, base, peer.bytes};
    return base;
}

}  // namespace

std::byte* map_peer(const SegmentId& peer) { return find_or_map(peer, -1); }
std::byte* map_peer(const SegmentId& peer, int fd) { return find_or_map(peer, fd); }

void unmap_peers() {
    if (g_own.bytes == 0) return;  // a forked child, whose parent may have held the lock
    std::scoped_lock hold(g_peers_lock);
    while (g_peer_count != 0) {
        const Peer& peer = g_peers[--g_peer_count];
        os::unmap_object(peer.base, peer.bytes);
    }
    g_peers_bytes = 0;
}

int own_descriptor() { return is_own_descriptor(own().fd) ? g_own.fd : -1; }

std::byte* take_room(std::uint64_t bytes) {
    const Segment& segment = own();
    if (segment.bytes == 0) return nullptr;
    bytes = base::round_up(bytes, os::page_bytes());
    std::uint64_t at = g_room_at.load(std::memory_order_relaxed);
    do {
        if (bytes > segment.bytes - g_annex.bytes - at) return nullptr;
    } while (!g_room_at.compare_exchange_weak(at, at + bytes, std::memory_order_relaxed));
    // Mates look at a directory, and at a control block, before its owner has touched all of it.
    static_cast<void>(os::prefer_here(segment.base + at, bytes));
    return segment.base + at;
}

Refusal last_refusal() {
    std::scoped_lock hold(g_peers_lock);
    return g_refusal;
}

Range carvable() {
    own();
    return g_carvable;
}

Range annex() {
    own();
    return g_annex;
}

bool is_own_descriptor(int fd) {
    struct stat facts {};
    return fd >= 0 && kernel::fstat(fd, &facts) == 0 && facts.st_dev == g_device && facts.st_ino == g_inode;
}

// Locked pages (mlock) are not given back by address, but through the descriptor. Those of a mount stay: were
// they given back, others could fill it before they are touched again, which would be a SIGBUS.
bool punch_shared(void* address, std::uint64_t bytes) {
    if (must_reserve_pages() || !is_mapped_here(address, bytes)) return false;
    note_gone(address, bytes);
    if (os::punch_hole(address, bytes)) return true;
    return is_own_descriptor(g_own.fd) && os::punch_hole(g_own.fd, offset_of(address), bytes);
}

bool give_up_shared(void* address, std::uint64_t bytes) {
    if (!is_mapped_here(address, bytes)) map_again(address, bytes, MAP_FIXED);
    return punch_shared(address, bytes);
}

bool map_again(void* address, std::uint64_t bytes, int fixed) {
    bool shared = g_own.bytes != 0;
    if (shared && !is_own_descriptor(g_own.fd)) return false;
    int flags = fixed | MAP_NORESERVE | (shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS);
    void* mapped = kernel::mmap(address, bytes, PROT_READ | PROT_WRITE, flags, shared ? g_own.fd : -1,
                                shared ? offset_of(address) : 0);
    if (mapped == MAP_FAILED) return false;
    if (mapped != address) {  // a kernel that does not know MAP_FIXED_NOREPLACE
        kernel::munmap(mapped, bytes);
        return false;
    }
    note_gone(address, bytes);
    if (shared) kernel::madvise(address, bytes, MADV_HUGEPAGE);
    return true;
}

bool must_reserve_pages() { return g_on_mount; }

void forget_segments() {
    if (is_own_descriptor(g_own.fd)) kernel::close(g_own.fd);
    g_own = {};
    g_id = {};
    g_peer_count = 0;
}

}  // namespace coco::heap
