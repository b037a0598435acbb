// SPDX-License-Identifier: BSD-3-Clause
//
// Sizes by which flights choose how a rank publishes its blocks. They change nothing that another rank has to
// know, except where stated.
#pragma once
#include "comm/comm.h"
#include "os/probe.h"

namespace coco::exec {

// Whether so many bytes, read and written by all ranks of the node, outgrow the last-level cache.
inline bool outgrows_caches(std::uint64_t bytes) {
    constexpr std::uint64_t kNeverBelow = 1 << 20;
    return bytes > kNeverBelow && bytes > os::caches().last_level_bytes;
}

// An eager rank copies up to this much of a v or w form out of a shared buffer, to return without waiting for
// its readers; beyond, they read the buffer itself. Where ranks crowd the CPUs a wait costs more. From
// bench/collective, 2 to 8 ranks on 2 cores.
inline constexpr std::uint64_t kEagerBytes = 1024, kEagerBytesCrowded = 32 * 1024;
inline std::uint64_t eager_bytes(const channel::Channel& channel) {
    return channel.waiting.spins == 0 ? kEagerBytesCrowded : kEagerBytes;
}

// Over several nodes a rank copies up to this much out for its mates, so as not to wait for them.
inline constexpr std::uint64_t kCopyOutBytes = 32 * 1024;

// Among neighbours, blocks above this go straight: messages are combined to save their number, at the cost of
// bytes. All ranks go by it.
inline constexpr std::uint64_t kCombinedBytes = 4096;

// Limits of both bcasts, equal on all ranks: segments in an epoch, segments in the ring at once, bytes of a
// segment.
inline constexpr std::uint64_t kTrain = 64;
inline constexpr std::uint64_t kRingSegments = 4;
inline constexpr std::uint64_t kSegmentBytesMax = channel::kStageBytes / kRingSegments / 64 * 64;
// A bcast of so many bytes may go in the record itself: by a type with holes, which is packed there, or in
// the first epochs of a communicator. Later ones of more than kInlineBytesMax go on the stage, which has room
// for hundreds, where the tape has it for 31 of 1 KiB (bench/grid.py, bcasts of 512 B and 1 KiB on 2 ranks:
// 0.15 and 0.18 us, on the tape 0.45). But to touch all of the stage takes some 0.25 ms
// (bench/first_calls.py).
inline constexpr std::uint64_t kTapedBytesMax = channel::kTapeBytes / 32, kInlineBytesMax = 128;
inline constexpr std::uint64_t kEarlyEpochs = 4096;

}  // namespace coco::exec
