// SPDX-License-Identifier: BSD-3-Clause
//
// Bcast. The root alone publishes, on its tape: how long its buffer is and how it can be had. The others
// follow the record, not their own arguments, so that a private buffer at the root changes no rank's
// path, nor does a longer one at a receiver, unless a rule leaves one of the two lengths to MPI. A buffer in
// many segments goes in trains of at most kTrain, each an epoch and a record of its own.
#include <algorithm>

#include "exec/bcast_record.h"
#include "exec/copy_block.h"
#include "exec/exchange.h"
#include "exec/walk.h"
#include "heap/segment.h"
#include "os/probe.h"

namespace coco::exec {
namespace {

using channel::Header;
using channel::Publish;
using schedule::Area;
using schedule::Milestone;
using schedule::Place;

// On the tape itself up to here, staged in one piece up to there: so the root can run some calls ahead.
constexpr std::uint64_t kStagedBytesMax = channel::kStageBytes / 8;

// The registry's row that moves a buffer published in this way.
const algorithms::Algorithm& row_that_moves(Publish publish) {
    using algorithms::Executor;
    constexpr auto kBcast = algorithms::Collective::bcast;
    static const algorithms::Algorithm *pull = &row_for(kBcast, Executor::pull),
                                       *ring = &row_for(kBcast, Executor::ring),
                                       *scratch = &row_for(kBcast, Executor::scratch);
    if (publish == Publish::direct) return *pull;
    return publish == Publish::segmented ? *ring : *scratch;
}

// How this call's buffer is published; the root's decision.
struct Way {
    Publish publish = Publish::direct;
    std::uint64_t bytes = 0;
    std::uint64_t segment_bytes = 0;
};

std::uint64_t segment_bytes_for(std::uint64_t wanted_bytes) {
    // Half of the L2 cache holds what is being filled and what is being read.
    std::uint64_t bytes = wanted_bytes != 0 ? wanted_bytes : os::caches().l2_bytes / 16;
    return std::clamp<std::uint64_t>(base::round_up(bytes, 64), 1024, kSegmentBytesMax);
}

Way choose_way(const Call& call, const std::byte* buffer, const algorithms::Algorithm& algorithm,
               std::uint64_t wanted_segment_bytes) {
    Way way{.bytes = call.local.bytes};
    bool in_place = algorithm.reads_peer_send() && heap::is_shared(buffer, way.bytes);
    if (in_place) return way;
    if ((algorithm.segmented && way.bytes != 0) || way.bytes > kStagedBytesMax)
        way = {Publish::segmented, way.bytes, segment_bytes_for(wanted_segment_bytes)};
    else
        way.publish = way.bytes <= kInlineBytesMax ? Publish::inlined : Publish::staged;
    return way;
}

std::uint64_t bytes_per_epoch(const Way& way) {
    return way.publish == Publish::segmented ? kTrain * way.segment_bytes
                                             : std::max<std::uint64_t>(way.bytes, 1);
}

// One epoch: [base, base + bytes) of this rank's buffer.
class BcastView {
  public:
    BcastView(comm::Comm& comm, std::int32_t root, const Way& way, std::byte* base, std::uint64_t bytes)
        : comm_(comm), channel_(comm.channel), root_(root), way_(way), base_(base), bytes_(bytes) {
        unit_bytes_ = way.publish == Publish::segmented ? way.segment_bytes : bytes;
        streaming_ = outgrows_caches(2 * bytes);
    }

    std::int32_t segments() const {
        return unit_bytes_ == 0 ? 1 : static_cast<std::int32_t>((bytes_ + unit_bytes_ - 1) / unit_bytes_);
    }

    // The root's record, before the schedule is walked: its raise of kArrived publishes it.
    void open(std::uint64_t total_bytes) {
        record_.open(comm_, {way_.publish, total_bytes, way_.segment_bytes}, base_, scratch_bytes());
        source_ = base_;
    }

    // What the root has published.
    void follow(const BcastRecord& record) {
        record_ = record;
        source_ = record.shown();
    }

    // The buffer has room for no more than this.
    void limit(std::uint64_t room_bytes) { room_bytes_ = room_bytes; }

    static constexpr bool kRows = false;
    void copy(Place from, Place to) {
        // The segment's number stands where it is not scratch.
        std::int32_t segment = from.area == Area::scratch ? to.index : from.index;
        std::uint64_t at = static_cast<std::uint64_t>(segment) * unit_bytes_;
        std::uint64_t end = std::min(bytes_, room_bytes_);
        if (at >= end) return;
        std::uint64_t bytes = std::min(unit_bytes_, end - at);
        const std::byte* source = from.area == Area::scratch
                                      ? record_.shown() + static_cast<std::uint64_t>(from.index) * unit_bytes_
                                      : source_ + at;
        std::byte* target = to.area == Area::scratch
                                ? record_.shown() + static_cast<std::uint64_t>(to.index) * unit_bytes_
                                : base_ + at;
        if (streaming_ && to.area != Area::scratch) [[unlikely]]
            copy_streaming(target, source, bytes);
        else
            copy_block(target, source, bytes);
    }

    void wait(std::int32_t peer, Milestone milestone) {
        bool record = peer == root_ && milestone == schedule::kArrived;  // waited for: we follow it
        if (!record) channel_.wait_milestone(peer, milestone);
    }

    void raise(Milestone milestone) {
        if (record_.is_open() && milestone == schedule::kArrived)
            record_.publish(comm_);
        else
            channel_.raise(milestone);
    }

  private:
    // The schedule may wait for the root's later segments by its flag: both are raised in order.
    std::uint64_t scratch_bytes() const {
        std::uint64_t ring = std::min<std::uint64_t>(static_cast<std::uint64_t>(segments()), kRingSegments);
        return way_.publish == Publish::segmented ? ring * unit_bytes_ : bytes_;
    }

    comm::Comm& comm_;
    channel::Channel& channel_;
    const std::int32_t root_;
    const Way& way_;
    std::byte* base_;
    const std::uint64_t bytes_;
    std::uint64_t unit_bytes_;
    std::uint64_t room_bytes_ = UINT64_MAX;
    bool streaming_;
    BcastRecord record_;
    const std::byte* source_ = nullptr;
};

void walk_epoch(comm::Comm& comm, BcastView& view, Publish publish, std::int32_t root) {
    walk(comm.schedule_for({&row_that_moves(publish), algorithms::Exchange::bcast, root, view.segments()}),
         view);
}

void send_all(comm::Comm& comm, std::byte* buffer, const Way& way) {
    std::uint64_t step = bytes_per_epoch(way);
    for (std::uint64_t at = 0; at == 0 || at < way.bytes; at += step) {  // nothing is told too
        if (at != 0) comm.channel.begin_epoch();
        BcastView view(comm, comm.rank, way, buffer + at, std::min(step, way.bytes - at));
        view.open(way.bytes);
        walk_epoch(comm, view, way.publish, comm.rank);
    }
}

// What fits is received. first: the record that opens the call.
void receive_all(comm::Comm& comm, std::int32_t root, std::byte* buffer, std::uint64_t room_bytes,
                 channel::Record first, Outcome& outcome) {
    std::uint64_t total = 1, step = 1;
    for (std::uint64_t at = 0; at == 0 || at < total; at += step) {
        if (at != 0) comm.channel.begin_epoch();
        BcastRecord record;
        record.follow(comm, root, at == 0 ? first : comm.channel.next_record(root));
        Way way{record.tale().publish, record.tale().total_bytes, record.tale().segment_bytes};
        total = way.bytes;
        step = bytes_per_epoch(way);
        BcastView view(comm, root, way, buffer + at, std::min(step, total - at));
        view.follow(record);
        view.limit(room_bytes > at ? room_bytes - at : 0);
        walk_epoch(comm, view, way.publish, root);
        outcome.ran = &row_that_moves(way.publish);
    }
    outcome.measure(total, room_bytes);
}

// The eager schedule of a buffer that travels on the tape itself, spelled out: a copy, a raise each. Walking
// it costs as much again (bench/collective, 8 B: 0.10 us against 0.07 us).
void tell(comm::Comm& comm, const std::byte* buffer, std::uint64_t bytes) {
    delay_if_asked();
    Header header = Header::of(Publish::inlined, bytes);
    channel::Record record = comm.channel.open_record(header);
    copy_block(record.payload(), buffer, bytes);
    comm.channel.publish(record, header);
    comm.channel.raise(schedule::kDone);
}

// Returns: whether the record held the buffer, which then is received.
bool was_told(comm::Comm& comm, std::byte* buffer, std::uint64_t room_bytes, channel::Record record,
              Outcome& outcome) {
    delay_if_asked();
    Header header{record.header->load(std::memory_order_relaxed)};
    if (header.publish() != Publish::inlined) return false;
    outcome.measure(header.bytes(), room_bytes);
    copy_block(buffer, record.payload(), std::min(header.bytes(), room_bytes));
    comm.channel.raise(schedule::kDone);
    return true;
}

}  // namespace

Outcome run_bcast(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                  const algorithms::Parameters& parameters) {
    const std::int32_t root = call.common.root;
    const std::uint64_t bytes = call.local.bytes;
    const Buffer& user = comm.rank == root ? call.local.send : call.local.recv;
    Outcome outcome{.ran = &row_that_moves(Publish::inlined)};
    channel::Record record{};
    if (comm.rank != root) {
        record = comm.channel.next_record(root);
        if (user.packer == nullptr && was_told(comm, user.base, bytes, record, outcome)) return outcome;
    } else if (user.packer == nullptr && algorithm.is_eager() && bytes <= kInlineBytesMax) {
        tell(comm, user.base, bytes);
        return outcome;
    }
    Side side{.base = user.base, .stride_bytes = 0, .blocks = {}};
    if (user.packer != nullptr && bytes != 0) {
        // Packed for direct reading if there is shared room; else it goes through segments.
        side.base = comm.rank == root ? fetch_room(comm, 0, bytes) : nullptr;
        if (side.base == nullptr) side.base = fetch_room(comm, 2, bytes);
        if (side.base == nullptr) stop_without_memory(bytes);
        side.where = Where::private_room;
    }
    outcome.staged = side.where != Where::user;
    fill_side(side, user, bytes);  // a receiver's too: what is not received must stay as it is
    if (comm.rank == root) {
        Way way = choose_way(call, side.base, algorithm, parameters.segment_bytes);
        outcome.ran = &row_that_moves(way.publish);
        send_all(comm, side.base, way);
    } else {
        receive_all(comm, root, side.base, bytes, record, outcome);
        empty_side(side, user, bytes);
    }
    return outcome;
}

}  // namespace coco::exec
