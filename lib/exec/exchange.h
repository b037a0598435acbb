// SPDX-License-Identifier: BSD-3-Clause
//
// What the plain and the sized exchanges have in common: publishing a slot, agreeing through the slots to
// hand a call back, and the waits.
#pragma once
#include "exec/call.h"
#include "exec/side.h"
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
inline std::uint64_t eager_bytes(const comm::Comm& comm) {
    return comm.channel.waiting.spins == 0 ? kEagerBytesCrowded : kEagerBytes;
}

// Among neighbours, blocks above this go straight: messages are combined to save their number, at the cost of
// bytes.
inline constexpr std::uint64_t kCombinedBytes = 4096;

inline std::uint64_t line_up(std::uint64_t bytes) { return base::round_up(bytes, base::kCacheLineBytes); }

// A block of a v or w form.
struct Spot {
    std::byte* at;
    std::uint64_t bytes;
};

// In the signature of calls on neighbours whose blocks go in bundles: a mate that has chosen otherwise, in a
// wrong program, must not take one slot for the other.
inline constexpr std::uint32_t kBundled = 0x10;
// Of a call: ranks that publish unequal signatures are in different calls, and the program is wrong.
std::uint32_t signature_of(const CommonFacts& common);
// Ends the job if `peer` is in another call than this rank.
void check_signature(const comm::Comm& comm, std::int32_t peer, std::uint32_t signature);
[[noreturn]] void stop_unequal(const comm::Comm& comm, std::int32_t peer);

// Waits for all slots of this call. Returns: none, or a rank's reason to refuse; `peer` when only others
// refused.
stats::Reason agree(comm::Comm& comm, std::uint32_t signature, stats::Reason own);

// Copies a rank's blocks of a v or w form to `scratch`, behind a table of StagedBlock.
// left_out: blocks that nobody asks it for, in rising order. A single block is for all.
void copy_out(std::byte* scratch, const std::byte* from, std::span<const channel::BlockAt> blocks,
              std::span<const std::int32_t> left_out);

// The part of a View that does not know about sizes.
class ExchangeView {
  public:
    ExchangeView(comm::Comm& comm, const CommonFacts& common, const algorithms::Algorithm& algorithm)
        : comm_(comm),
          channel_(comm.channel),
          common_(common),
          algorithm_(algorithm),
          signature_(signature_of(common)) {}

  protected:
    comm::Row& row(schedule::Area area, std::int32_t owner) {
        return comm_.rows[static_cast<std::size_t>(area) * static_cast<std::size_t>(comm_.ranks) +
                          static_cast<std::size_t>(owner)];
    }
    // Others' last touch of our buffers need not be waited for when all they touch is a guarded copy.
    bool must_wait_done(const Side& send) const {
        return algorithm_.writes_peer_recv() || (algorithm_.reads_peer_send() && !send.is_guarded());
    }
    channel::Slot& open_slot();
    void publish(channel::Slot& slot);

    comm::Comm& comm_;
    channel::Channel& channel_;
    const CommonFacts& common_;
    const algorithms::Algorithm& algorithm_;
    std::uint32_t signature_;
    bool published_ = false;
};

// The row that reads peers' buffers and writes only its own.
inline const algorithms::Algorithm& plain_pull(algorithms::Collective collective) {
    return row_for(collective, algorithms::Executor::pull);
}

// small.cc. Requires: an eager schedule, dense buffers, and scratch that fits into a slot.
Outcome run_small(comm::Comm& comm, const Call& call, const schedule::Schedule& schedule);
// The same for v and w forms. Requires: an eager schedule, dense buffers, not in place, and table and blocks
// of this rank that fit into a slot.
Outcome run_small_sized(comm::Comm& comm, const Call& call, const schedule::Schedule& schedule);
// Implemented in uniform.cc and sized.cc. Requires: comm's epoch is this call's.
Outcome run_uniform(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm);
Outcome run_sized(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm);
// neighbors.cc. Requires: comm.neighbors is there, and open.
Outcome run_neighbors(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                      const algorithms::Parameters& parameters);
// nodes.cc. Requires: comm spans several nodes.
Outcome run_over_nodes(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                       const algorithms::Parameters& parameters);
Outcome run_sized_over_nodes(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                             const algorithms::Parameters& parameters);
// bundles_sized.cc: v and w forms of neighbours. Requires: kept is of a schedule made from bundles.
Outcome run_sized_bundles(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                          comm::Comm::Kept& kept);
// Of both bcasts: segments in an epoch, those in the ring at once, and what goes in a record itself.
inline constexpr std::uint64_t kTrain = 64;
inline constexpr std::uint64_t kRingSegments = 4;
inline constexpr std::uint64_t kSegmentBytesMax = channel::kStageBytes / kRingSegments / 64 * 64;
inline constexpr std::uint64_t kInlineBytesMax = channel::kTapeBytes / 16;
// bcast.cc; takes its epochs itself: one for each train of segments.
Outcome run_bcast(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                  const algorithms::Parameters& parameters);
// nodes_bcast.cc; as run_bcast, over several nodes.
Outcome run_bcast_over_nodes(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                             const algorithms::Parameters& parameters);

}  // namespace coco::exec
