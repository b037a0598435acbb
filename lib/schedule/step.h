// SPDX-License-Identifier: BSD-3-Clause
//
// One step of one rank's schedule. Three kinds on a node:
//   copy   copies `count` blocks, one after the other, each from a place to a place; any rank of the node may
//          run it
//   raise  says that this rank has come to a milestone of this call
//   wait   waits until each of `count` ranks has come to a milestone of this call
// Three kinds between any ranks, whose places are the rank's own:
//   send      starts a message of `count` blocks, from first() on, to rank peer()
//   receive   starts to receive a message of `count` blocks from rank peer(), to first() and on
//   complete  waits until all messages that the rank has started are complete, except for the last `count`
// The n-th message from one rank to another is received by the n-th receive. Until a message is complete, its
// sender may not write the blocks and its receiver may not touch them. A send may have to wait for its
// receive. No message is under way at kDone.
//
// A copy may have waits of its own, for the arrival of the ranks whose areas it touches. With `after_target`
// the step waits for the owner of the target before the first block; with `after_source` it waits before each
// block for the owner of that block's source. The address of the target may be looked up between these waits,
// so if both owners are one rank the wait is `after_target`. source(i), target(i) and awaited(i) say what a
// step stands for: exec and the simulator both follow them.
//
// Milestones of a call are raised in increasing order:
//   kArrived      the rank is in the call. Other ranks may touch its buffers, read the scratch blocks that it
//                 has copied in before this raise, and copy blocks into the rest of its scratch. A rank must
//                 wait for this before it touches an area of another rank: only then does it know the address
//   1, 2, ...     the algorithm's own
//   kUnread       before kDone, where reads through the kernel have failed: the rank will touch no other
//                 rank's buffers any more, but has yet to be shown some (exec/pipe.h). No schedule has it
//   kDone         the rank will touch no other rank's memory in this call any more
// A schedule raises kArrived if some rank waits for it there; every schedule raises kDone. After kDone a
// schedule only waits for the kDone of those ranks that touch this rank's send or recv area. Exec leaves
// these waits out if it has published a staged copy of the send area, which later calls guard (see
// comm/comm.h), and the algorithm writes to no peer's recv area.
#pragma once
#include <cstdint>

#include "base/check.h"
#include "schedule/place.h"

namespace coco::schedule {

using Milestone = std::uint32_t;
inline constexpr Milestone kArrived = 0;
inline constexpr Milestone kUnread = 0xFFFFE;
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

    // Where block i of a copy comes from and goes to. For a message see first().
    Place source(std::int32_t i) const {
        COCO_CHECK_DEAR(i >= 0 && i <= count, "a step has a source for each of its blocks");
        return {source_owner + (along_owners ? i : 0), source_area, source_index + (along_owners ? 0 : i)};
    }
    Place target(std::int32_t i) const {
        COCO_CHECK_DEAR(i >= 0 && i <= count, "a step has a target for each of its blocks");
        return {target_owner, target_area, target_index + i};
    }
    // Where the first block of a message is, on rank `self`, to which the step belongs.
    Place first(std::int32_t self) const {
        COCO_CHECK_DEAR(act == Act::send || act == Act::receive, "a message has a first block");
        return act == Act::send ? Place{self, source_area, source_index}
                                : Place{self, target_area, target_index};
    }
    // The rank at the other end of a message.
    std::int32_t peer() const {
        COCO_CHECK_DEAR(act == Act::send || act == Act::receive, "a message has two ends");
        return act == Act::send ? target_owner : source_owner;
    }
    // The i-th rank of a wait.
    std::int32_t awaited(std::int32_t i) const {
        COCO_CHECK_DEAR(act == Act::wait && i >= 0 && i <= count, "a wait is for so many ranks");
        return source_owner + i;
    }
};
static_assert(sizeof(Step) == 32);

}  // namespace coco::schedule
