// SPDX-License-Identifier: BSD-3-Clause
//
// Misses that the processor counts while threads, one a core, walk the library's schedules: what replay.h
// computes, in earnest. By Linux' perf_event_open, which most virtual machines have no counters for.
#pragma once
#include <array>
#include <span>
#include <string>

#include "bench/cache/replay.h"

namespace coco::cache {

// Returns: why this machine cannot count with so many ranks, in one line; empty: it can.
std::string no_counters(std::int32_t ranks);

// Returns: misses of one rank in L1 and L2, means over ranks and 32 calls; negative where counting failed.
// evicting_bytes: what each rank writes before its buffers, so that its caches hold nothing else.
std::array<double, 2> counted(const Call& call, std::span<const schedule::Schedule> schedules,
                              std::uint64_t evicting_bytes);

}  // namespace coco::cache
