// SPDX-License-Identifier: BSD-3-Clause
//
// One step of one rank's schedule. Three kinds on a node:
//   copy   `count` blocks, one after the other, each from a place to a place; any rank of the node may run it
//   raise  this rank has come to a milestone of this call
//   wait   until each of `count` ranks has come to a milestone of this call
// and three between any ranks, whose places are the rank's own:
//   send      starts a message of `count` blocks, from first() on, to rank peer()
//   receive   starts to receive as many from rank peer(), to first() and on
//   complete  until all messages that the rank has started are through, but the last `count`
// The n-th message from one rank to another is received by the n-th receive. Until it is through, what is
// sent may not be written, and what is received may not be touched. A send may have to wait for its receive.
// Nothing is under way at kDone.
//
// A copy may begin with waits of its own, for the arrival of those whose areas it touches: `after_target`
// before the first block, then `after_source` before each block for the owner of its source. Where the target
// is may be looked up between the two: one owner's wait is `after_target`. What a step stands
// for is said once, by source(i), target(i) and awaited(i): exec and the simulator follow these.
//
// Milestones of a call are raised in increasing order:
//   kArrived      the rank is in the call, its buffers may be touched and its scratch blocks copied in
//                 before this raise may be read; others may be copied in by others. Who touches an area
//                 of another rank has waited for this, or does not know where it is
//   1, 2, ...     the algorithm's own
//   kDone         the rank will touch no other rank's memory in this call any more
// A rank that somebody waits for at kArrived raises it; every schedule raises kDone. After kDone come only
// waits for the kDone of those ranks that touch this rank's send or recv area. Exec leaves these waits out
// when it has published a staged copy of the send area, which the next calls guard (see comm/comm.h), and the
// algorithm writes no peer's recv area.
#pragma once
#include <cstdint>

#include "schedule/place.h"

namespace coco::schedule {

using Milestone = std::uint32_t;
inline constexpr Milestone kArrived = 0;
inline constexpr Milestone kDone = 0xFFFFF;  // the largest

enum class Act : std::uint8_t { copy, raise, wait, send, receive, complete };

struct Step {
    Act act;
    Area source_area;   // copy
    Area target_area;   // copy
    bool after_source;  // copy
    bool after_target;  // copy
    bool along_owners;  // copy: the next block is the next owner's, not the next index
    std::uint16_t unused;
    std::int32_t count;         // copy, send, receive: blocks; wait: ranks; complete: messages
    Milestone milestone;        // raise, wait
    std::int32_t source_owner;  // copy; wait: the first rank waited for; receive: the sender
    std::int32_t source_index;  // copy, send
    std::int32_t target_owner;  // copy; send: the receiver
    std::int32_t target_index;  // copy, receive; the next block has the next one

    // Of block i of a copy; of a message see first().
    Place source(std::int32_t i) const {
        return {source_owner + (along_owners ? i : 0), source_area, source_index + (along_owners ? 0 : i)};
    }
    Place target(std::int32_t i) const { return {target_owner, target_area, target_index + i}; }
    // Where the first block of a message is, on rank `self` whose step it is, and the rank at its other end.
    Place first(std::int32_t self) const {
        return act == Act::send ? Place{self, source_area, source_index}
                                : Place{self, target_area, target_index};
    }
    std::int32_t peer() const { return act == Act::send ? target_owner : source_owner; }
    // The i-th rank of a wait.
    std::int32_t awaited(std::int32_t i) const { return source_owner + i; }
};
static_assert(sizeof(Step) == 32);

}  // namespace coco::schedule
