// SPDX-License-Identifier: BSD-3-Clause
//
// Mapping node-mates whose /proc/PID/fd is closed to this process, as that of execute-only programs is: all
// pass each other their segments' descriptors over sockets. Called when a communicator is set up. Thread
// safety: one communicator at a time; a second one meanwhile goes without. Fails: what could not be mapped
// stays so; ten seconds at most are waited for a mate that says nothing.
#pragma once
#include <vector>

#include "comm/comm.h"
#include "heap/segment.h"

namespace coco::comm {

// segments: of all ranks. Requires: all ranks of the communicator call it.
void map_passed(const Comm& comm, const std::vector<heap::SegmentId>& segments);

}  // namespace coco::comm
