// SPDX-License-Identifier: BSD-3-Clause
//
// This process's segment of the shared heap, and the peers' segments.
//
// Own segment: a memfd made before the first allocation (below malloc, before main), sparse, mapped
// MAP_SHARED, 2 MiB aligned, as far as it is used (view.h). Only MPI ranks get one (launcher's environment,
// or an MPI library loaded); COCO_HEAP_LIMIT=0 and failures leave the process without: everything still
// works, on private memory. Peers: mapped on first use through /proc/PID/fd/N, checked (size, cookie), at any
// address, unmapped when MPI has ended, unless sessions were used: memory that many processes map is given
// back by the last of them, for all that were there. An address is (rank, offset): the same block is at
// own().base + offset in its owner and at map_peer(...) + offset in a peer, once that has followed the
// owner's growth.
//
// Thread safety: all functions may be called from any thread. Process safety: a forked child has a private
// copy of the heap at the same addresses and is no rank: own().bytes is 0 there. This room uses no malloc,
// new or stdio.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace coco::heap {

struct Segment {
    std::byte* base = nullptr;
    std::uint64_t bytes = 0;  // most that it may grow to; 0: this process has no shared heap
    int fd = -1;
};

// How another process of the node finds this one's segment. Trivially copyable: travels by MPI as bytes.
struct SegmentId {
    std::uint64_t host;    // hash of boot id and of the pid and user namespaces: equal = may try to map
    std::uint64_t cookie;  // random, unique to the segment; 0: no segment
    std::uint64_t bytes;
    std::int32_t pid;
    std::int32_t fd;
};

// This process's segment. The first call may be the one that makes it.
const Segment& own();
SegmentId own_id();
// Shared memory for the library itself, from room of the segment that is kept for it behind the heap: so that
// a program that has used its heap up, or bounded it, takes none of it away. Gives pages, zeroed, never given
// back, from the NUMA domain where the calling thread runs, whoever touches them first. Returns: null if
// there is no such room: without a segment, on a mount, under a limit on file sizes, or when it or the
// address space is used up.
std::byte* take_room(std::uint64_t bytes);
// Whether all of [address, address + bytes) is the own segment's memory, so that peers see there what this
// process does: the addresses are the segment's, and the program has put nothing else in their place as far
// as its calls were seen (overlays.h): a call that is no function's, made by an instruction of the program's
// own, is not. Any address is allowed.
bool is_shared(const void* address, std::size_t bytes = 1);
// Offset of an address within the own segment. Requires: is_shared(address).
std::uint64_t offset_of(const void* address);
// Maps a peer's segment (or finds it mapped) as far as its owner does. fd: a descriptor that the peer has
// passed, which stays the caller's; -1: it is opened in /proc. Returns: its base here; null if it cannot be
// mapped, with the reason logged at info and kept as the last refusal. The own id gives the own base.
std::byte* map_peer(const SegmentId& peer, int fd = -1);
// The number of times that the owner of a mapped segment, the own one included, has mapped more of it. An
// owner maps before it shows anybody what lies there: whoever was shown an address reads this then, relaxed,
// and follows if it has changed.
const std::atomic<std::uint64_t>& growths_of(std::byte* segment);
// Maps what the owner has mapped since. Returns: the number up to which that comes. Ends the job where the
// address space has no room for it: others wait for this rank.
std::uint64_t follow_growth(const std::byte* segment);
// Requires: no thread touches a peer's memory any more, in libcoco or by pointers that it keeps.
void unmap_peers();
// The own segment's descriptor, to be passed; -1 where there is none, or the program has closed it.
int own_descriptor();

// Why this process has no segment though it wanted one, or why a peer's could not be mapped.
struct Refusal {
    const char* what = nullptr;  // null: nothing was refused
    std::int32_t peer_pid = 0;   // 0: the own segment
    int error = 0;               // an errno; 0: none
};
Refusal last_refusal();

}  // namespace coco::heap
