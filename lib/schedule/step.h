// SPDX-License-Identifier: BSD-3-Clause
//
// One step of one rank's schedule. Three kinds on a node:
//   copy   one block from a place to a place; any rank of the node may run it
//   raise  this rank has come to a milestone of this call
//   wait   until `rank` has come to a milestone of this call
//
// Milestones of a call are raised in increasing order:
//   kArrived      the rank is in the call, its buffers may be touched and its scratch blocks copied in
//                 before this raise may be read
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

enum class Act : std::uint8_t { copy, raise, wait };

// 20 bytes: a rank of P walks P to 2 P of them in a call.
struct Step {
    Act act : 4;
    Area source_area : 4;       // copy
    Area target_area : 4;       // copy
    Milestone milestone : 20;   // raise, wait
    std::int32_t source_owner;  // copy; wait: the rank waited for
    std::int32_t source_index;  // copy
    std::int32_t target_owner;  // copy
    std::int32_t target_index;  // copy

    Place source() const { return {source_owner, source_area, source_index}; }
    Place target() const { return {target_owner, target_area, target_index}; }
};
static_assert(sizeof(Step) == 20);

}  // namespace coco::schedule
