// SPDX-License-Identifier: BSD-3-Clause
//
// The rules of a call's schedules that can be seen without running them.
#pragma once
#include <string>

#include "simulator.h"

namespace coco::simulator {

// How many blocks an area of a rank has in this call; 0: the rank has no such area.
std::int32_t extent(const Call& call, std::int32_t rank, schedule::Area area);
std::string to_text(schedule::Place place);
// Returns: what is wrong, or nothing. Checks that places exist, copies stay on their node and within what the
// registry says, milestones rise, every wait is for a milestone that the other raises, kDone is raised last
// and followed by nothing but waits for kDone.
std::string check_form(const Call& call, const topology::NodeMap& map);

}  // namespace coco::simulator
