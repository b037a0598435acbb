// SPDX-License-Identifier: BSD-3-Clause
#include "heap/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <new>

#include "base/bits.h"
#include "base/check.h"
#include "base/kept_errno.h"
#include "base/kernel.h"
#include "base/lock.h"
#include "base/log.h"
#include "heap/gone.h"
#include "heap/overlays.h"
#include "heap/own_segment.h"
#include "heap/process_facts.h"
#include "heap/segment_size.h"
#include "heap/view.h"
#include "os/cpu.h"
#include "os/numa.h"
#include "os/process.h"
#include "os/shared_memory.h"

namespace coco::heap {

constinit base::Lock g_taking_lock;

namespace {

// The header at the start of every segment, which a peer checks before it believes in the segment.
struct Header {
    std::uint64_t magic;
    std::uint64_t cookie;
    Areas areas;
    std::int32_t pid;
    std::uint32_t version;
    // How far the owner has mapped its areas, stored before the number of changes is raised, and that number.
    std::atomic<std::uint64_t> mapped_to[kAreas];
    std::atomic<std::uint64_t> growths;
    // The limit on its address space, as far as it has seen it. Relaxed: it binds what is grown later.
    std::atomic<std::uint64_t> address_space_bytes;
};
constexpr std::uint64_t kMagic = 0x6f636f6362696c00u;  // "\0libcoco"
constexpr std::uint32_t kVersion = 2;
// Behind the heap: room for the library itself.
constexpr std::uint64_t kRoomBytes = std::uint64_t{24} << 30;

constinit Segment g_own;
constinit SegmentId g_id{};
constinit Range g_carvable{};
constinit View g_view;
constinit base::Lock g_growing;  // guards g_view's changes
// Where the rest of each area begins. Guarded by g_taking_lock.
constinit std::uint64_t g_taken_to[kAreas] = {};
constinit bool g_on_mount = false;
constinit dev_t g_device = 0;
constinit ino_t g_inode = 0;
constinit base::Lock g_making;
constinit std::atomic<bool> g_made{false};

struct Peer {
    std::uint64_t cookie;
    View view;
};
constexpr int kMostPeers = 4096;
constinit Peer g_peers[kMostPeers] = {};
constinit int g_peer_count = 0;
constinit base::Lock g_peers_lock;
constinit Refusal g_refusal;  // written while the segment is made, then under g_peers_lock

Header& header_of(std::byte* segment) { return *reinterpret_cast<Header*>(segment); }

// The heap, and what lies behind it where no limit could meet that.
Areas areas_for(const os::MemoryObject& object, std::uint64_t heap_bytes) {
    const bool has_more = limit_of(RLIMIT_FSIZE) == UINT64_MAX && !object.on_mount;
    return {{0, heap_bytes, heap_bytes + (has_more ? kRoomBytes : 0)}};
}

// /dev/shm is small in many containers.
std::uint64_t within_mount(int fd, std::uint64_t bytes) {
    struct statfs mount {};
    if (kernel::fstatfs(fd, &mount) != 0) return bytes;
    const auto unit = static_cast<std::uint64_t>(mount.f_bsize);
    return std::min(bytes, mount_share_bytes(mount.f_blocks * unit, mount.f_bavail * unit, os::node_ranks()));
}

bool publish(const os::MemoryObject& object) {
    COCO_CHECK(g_own.bytes == 0, "a process makes one segment");
    if (object.on_mount && !os::reserve_pages(object.fd, 0, os::page_bytes())) return false;
    std::byte* base = g_view.base();
    const Areas& areas = g_view.areas();
    struct stat facts {};
    if (kernel::fstat(object.fd, &facts) != 0 || !watch_pages(base, areas.bytes())) return false;
    g_device = facts.st_dev;
    g_inode = facts.st_ino;
    g_on_mount = object.on_mount;
    g_id = {os::host_identity(), os::random_cookie(), areas.bytes(), kernel::getpid(), object.fd};
    Header& header = *new (base) Header{kMagic, g_id.cookie, areas, g_id.pid, kVersion, {}, {}, {}};
    header.address_space_bytes.store(limit_of(RLIMIT_AS), std::memory_order_relaxed);
    for (int area = 0; area < kAreas; ++area)
        header.mapped_to[area].store(g_view.mapped_to(static_cast<Area>(area)), std::memory_order_relaxed);
    g_carvable = {base, areas.bytes_of(kHeap)};
    g_taken_to[kHeap] = kFirstSpan;
    g_taken_to[kRoom] = areas.begin[kRoom];
    g_own = {base, areas.bytes(), object.fd};
    return true;
}

bool try_make(std::uint64_t bytes) {
    os::MemoryObject object = os::make_memory_object(bytes);
    if (object.fd < 0) return false;
    if (object.on_mount) bytes = within_mount(object.fd, bytes);
    const Areas areas = areas_for(object, bytes);
    if (bytes >= kLeastSegmentBytes && kernel::ftruncate(object.fd, areas.bytes()) == 0 &&
        g_view.open(object.fd, areas, View::In::owner)) {
        if (publish(object)) return true;
        g_view.close();
    }
    kernel::close(object.fd);
    return false;
}

void make_own() {
    const base::KeptErrno kept;
    std::uint64_t bytes = wants_shared_heap() ? wanted_heap_bytes() : 0;
    bool wanted = bytes != 0;
    while (bytes >= kLeastSegmentBytes && !try_make(bytes)) bytes = (bytes / 2) & ~(os::kHugePageBytes - 1);
    if (wanted && g_own.bytes == 0) {
        g_refusal = {"no shared memory of 4 MiB or more for the heap (memfd, /dev/shm)", 0, errno};
        COCO_LOG(info, "no shared heap: errno " << errno << "; allocation is private");
    }
}

// A process that has the owner's id sees what the owner has stored in the header: whatever brought the id
// from one process to the other has ordered the one after the other, and the kernel reads the pages that both
// map.
bool header_matches(int fd, const SegmentId& peer, Areas& areas) {
    alignas(Header) std::byte bytes[sizeof(Header)];
    if (kernel::pread(fd, bytes, sizeof bytes, 0) != sizeof bytes) return false;
    const Header& header = header_of(bytes);
    areas = header.areas;
    return header.magic == kMagic && header.version == kVersion && header.cookie == peer.cookie &&
           areas.bytes() == peer.bytes && header.pid == peer.pid;
}

// How far the rest of the node lets this rank's heap grow: all mates map it, too.
std::uint64_t heap_bytes_most() {
    std::uint64_t limit = limit_of(RLIMIT_AS);
    header_of(g_own.base).address_space_bytes.store(limit, std::memory_order_relaxed);
    const std::scoped_lock hold(g_peers_lock);
    for (int i = 0; i < g_peer_count; ++i)
        limit = std::min(
            limit, header_of(g_peers[i].view.base()).address_space_bytes.load(std::memory_order_relaxed));
    return bounded_heap_bytes(limit, os::node_ranks());
}

// More than is asked for, so that it is seldom asked for, unless address space is short.
std::uint64_t growth_of(Area area, std::uint64_t end, std::uint64_t most) {
    constexpr std::uint64_t kLeast = 16u << 20, kMost = std::uint64_t{1} << 30;
    const std::uint64_t mapped = g_view.mapped_to(area) - g_view.areas().begin[area];
    const std::uint64_t more = most == UINT64_MAX ? std::clamp(mapped / 4, kLeast, kMost) : 0;
    return std::min(base::round_up(end + more, os::kHugePageBytes), g_view.areas().begin[area + 1]);
}

// error: 0 where no call has failed.
bool refuse(const SegmentId& peer, const char* why, int error = 0) {
    COCO_LOG(info, "cannot map the heap of process " << peer.pid << ": " << why << ", errno " << error);
    g_refusal = {why, peer.pid, error};
    return false;
}

// Extends a view to what its owner has mapped. growths: becomes the number of the owner's growths that this
// comes up to. Returns: whether the address space has room for it.
bool follow(View& view, std::uint64_t& growths) {
    COCO_CHECK(view.base() != nullptr, "a peer that is followed is mapped");
    const Header& header = header_of(view.base());
    // Acquire: pairs with the release in reach_own(), so that the areas are as far at least.
    growths = header.growths.load(std::memory_order_acquire);
    for (int i = 0; i < kAreas; ++i) {
        const auto area = static_cast<Area>(i);
        if (!view.extend(area, header.mapped_to[i].load(std::memory_order_relaxed))) return false;
    }
    return true;
}

[[noreturn]] void stop_without_space(const View& peer) {
    base::log_last(base::Text() << "no address space for more of the heap of process "
                                << header_of(peer.base()).pid << ": errno " << errno
                                << "; a limit (ulimit -v, RLIMIT_AS) leaves none");
    std::abort();
}

// Into the next peer's place.
bool map_descriptor(const SegmentId& peer, int fd) {
    COCO_CHECK(g_peer_count < kMostPeers, "there is a place for one more peer");
    struct stat facts {};
    Areas areas{};
    if (kernel::fstat(fd, &facts) != 0 || facts.st_size < 0 ||
        static_cast<std::uint64_t>(facts.st_size) != peer.bytes)
        return refuse(peer, "another size");
    if (!header_matches(fd, peer, areas)) return refuse(peer, "not its segment");
    View& view = g_peers[g_peer_count].view;
    if (!view.open(fd, areas, View::In::others)) return refuse(peer, "no address space", errno);
    return true;
}

bool open_peer(const SegmentId& peer) {
    base::Text path;
    path << "/proc/" << peer.pid << "/fd/" << peer.fd << '\0';
    // Should the peer have put something else there (a terminal, a pipe), then opening it must do nothing.
    int fd = kernel::open(path.view().data(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return refuse(peer, "open of its descriptor in /proc", errno);
    const bool mapped = map_descriptor(peer, fd);
    kernel::close(fd);
    return mapped;
}

}  // namespace

const Segment& own() {
    // Acquire: pairs with the release below, so whoever sees g_made sees g_own.
    if (!g_made.load(std::memory_order_acquire)) {
        come_before_segment();
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

namespace {

// Whether a range lies in what is mapped of one of the own segment's areas.
bool is_mapped_own(const void* address, std::size_t bytes) {
    const std::uint64_t offset = offset_of(address);
    if (offset >= g_own.bytes) return false;
    const std::uint64_t mapped_to =
        header_of(g_own.base).mapped_to[g_view.areas().area_of(offset)].load(std::memory_order_relaxed);
    return offset < mapped_to && bytes <= mapped_to - offset;
}

// A program may have closed the descriptor. Then the mapping is stretched, if its last page is still the
// segment's.
bool extend_own(Area area, std::uint64_t end) {
    if (is_own_descriptor(g_own.fd)) return g_view.extend(area, end, g_own.fd);
    const std::byte* last = g_own.base + g_view.mapped_to(area) - os::page_bytes();
    return !is_changed(last, 1, kGone) && g_view.extend(area, end);
}

// Sees to it that an area is mapped up to `end`.
bool reach_own(Area area, std::uint64_t end) {
    COCO_CHECK(end <= g_view.areas().begin[area + 1], "an area is reached up to its end");
    std::atomic<std::uint64_t>& mapped_to = header_of(g_own.base).mapped_to[area];
    if (end <= mapped_to.load(std::memory_order_relaxed)) return true;
    const std::scoped_lock hold(g_growing);
    const std::uint64_t most = area == kHeap ? heap_bytes_most() : UINT64_MAX;
    if (end > most || !extend_own(area, growth_of(area, end, most))) return end <= g_view.mapped_to(area);
    mapped_to.store(g_view.mapped_to(area), std::memory_order_relaxed);
    // Release: pairs with follow(). What lies in the new part is published later still.
    header_of(g_own.base).growths.fetch_add(1, std::memory_order_release);
    return true;
}

}  // namespace

std::uint64_t take_own(Area area, std::uint64_t bytes, std::uint64_t alignment) {
    COCO_CHECK(bytes != 0 && bytes % os::page_bytes() == 0 && std::has_single_bit(alignment),
               "whole pages are taken, at multiples of a power of two");
    if (own().bytes == 0) return 0;
    const std::scoped_lock hold(g_taking_lock);
    const auto base = reinterpret_cast<std::uint64_t>(g_own.base);
    const std::uint64_t offset = base::round_up(base + g_taken_to[area], alignment) - base,
                        end = g_view.areas().begin[area + 1];
    COCO_CHECK(g_taken_to[area] <= end, "the rest of an area lies in it");
    if (offset > end || bytes > end - offset || !reach_own(area, offset + bytes)) return 0;
    g_taken_to[area] = offset + bytes;
    return offset;
}

void give_own(std::uint64_t offset, std::uint64_t bytes) {
    const std::scoped_lock hold(g_taking_lock);
    COCO_CHECK(bytes != 0 && offset >= kFirstSpan && offset + bytes <= g_taken_to[kHeap],
               "what is given back was taken");
    if (offset + bytes == g_taken_to[kHeap]) g_taken_to[kHeap] = offset;
}

std::uint64_t taken_end() { return g_taken_to[kHeap]; }

bool is_shared(const void* address, std::size_t bytes) {
    return is_mapped_own(address, bytes) && !is_changed(address, bytes, kGone);
}

std::uint64_t offset_of(const void* address) {
    return reinterpret_cast<std::uint64_t>(address) - reinterpret_cast<std::uint64_t>(g_own.base);
}

std::byte* map_peer(const SegmentId& peer, int fd) {
    const Segment& mine = own();
    if (mine.bytes == 0 || peer.cookie == 0 || peer.host != g_id.host) return nullptr;
    if (peer.cookie == g_id.cookie) return mine.base;
    std::scoped_lock hold(g_peers_lock);
    Peer* const end = g_peers + g_peer_count;
    Peer* found = std::find_if(g_peers, end, [&](const Peer& known) { return known.cookie == peer.cookie; });
    if (found == end) {
        if (g_peer_count == kMostPeers) refuse(peer, "too many peers");
        if (g_peer_count == kMostPeers || !(fd >= 0 ? map_descriptor(peer, fd) : open_peer(peer)))
            return nullptr;
        found->cookie = peer.cookie;
        ++g_peer_count;
    }
    std::uint64_t growths = 0;
    if (follow(found->view, growths)) return found->view.base();
    refuse(peer, "no address space", errno);
    return nullptr;
}

const std::atomic<std::uint64_t>& growths_of(std::byte* segment) {
    COCO_CHECK(segment != nullptr, "a segment that grows is mapped");
    COCO_CHECK_DEAR(header_of(segment).magic == kMagic, "a segment that grows is mapped");
    return header_of(segment).growths;
}

std::uint64_t follow_growth(const std::byte* segment) {
    const std::scoped_lock hold(g_peers_lock);
    for (int i = 0; i < g_peer_count; ++i)
        if (View& view = g_peers[i].view; view.base() == segment) {
            std::uint64_t growths = 0;
            if (!follow(view, growths)) stop_without_space(view);
            return growths;
        }
    return g_own.bytes != 0 ? header_of(g_own.base).growths.load(std::memory_order_relaxed) : 0;
}

void unmap_peers() {
    if (g_own.bytes == 0) return;  // a forked child, whose parent may have held the lock
    std::scoped_lock hold(g_peers_lock);
    while (g_peer_count != 0) g_peers[--g_peer_count].view.close();
}

int own_descriptor() { return is_own_descriptor(own().fd) ? g_own.fd : -1; }

std::byte* take_room(std::uint64_t bytes) {
    COCO_CHECK(bytes != 0, "room is taken for something");
    bytes = base::round_up(bytes, os::page_bytes());
    const std::uint64_t offset = take_own(kRoom, bytes, os::page_bytes());
    if (offset == 0) return nullptr;
    // Mates look at a directory, and at a control block, before its owner has touched all of it.
    static_cast<void>(os::prefer_here(g_own.base + offset, bytes));
    return g_own.base + offset;
}

Refusal last_refusal() {
    std::scoped_lock hold(g_peers_lock);
    return g_refusal;
}

Range carvable() {
    own();
    return g_carvable;
}

bool is_own_descriptor(int fd) {
    struct stat facts {};
    return fd >= 0 && kernel::fstat(fd, &facts) == 0 && facts.st_dev == g_device && facts.st_ino == g_inode;
}

// Locked pages (mlock) are not given back by address, but through the descriptor. Those of a mount stay: were
// they given back, others could fill it before they are touched again, which would be a SIGBUS.
bool punch_shared(void* address, std::uint64_t bytes) {
    COCO_CHECK_DEAR(
        reinterpret_cast<std::uint64_t>(address) % os::page_bytes() == 0 && bytes % os::page_bytes() == 0,
        "whole pages are given back");
    if (must_reserve_pages() || !is_shared(address, bytes)) return false;
    note_gone(address, bytes);
    if (os::punch_hole(address, bytes)) return true;
    return is_own_descriptor(g_own.fd) && os::punch_hole(g_own.fd, offset_of(address), bytes);
}

bool must_reserve_pages() { return g_on_mount; }

void forget_segments(std::uint64_t heap_bytes) {
    COCO_CHECK(heap_bytes % os::page_bytes() == 0, "whole pages are unmapped");
    for (int i = 0; i < kAreas; ++i) {
        const auto area = static_cast<Area>(i);
        const std::uint64_t begin = std::max(heap_bytes, g_view.areas().begin[area]),
                            end = g_view.mapped_to(area);
        if (begin < end) kernel::munmap(g_view.base() + begin, end - begin);
    }
    if (is_own_descriptor(g_own.fd)) kernel::close(g_own.fd);
    g_own = {};
    g_id = {};
    g_carvable.bytes = heap_bytes;  // what lies behind is anybody's
    g_peer_count = 0;
}

}  // namespace coco::heap
