// SPDX-License-Identifier: BSD-3-Clause
//
// Bcast over several nodes. Every leader cuts its buffer in the same way, by its length, which MPI makes
// equal, and the parameters: a segment is a message, whose mark tells that its sender thinks of the same
// length. On a node the one rank with scratch publishes as the root does in bcast.cc, on its tape, and alone
// decides how: in the record, on its stage, or, if its buffer is on the shared heap, there: scratch is then
// an alias of the buffer. Nothing is copied to it, nor does it fill, but its readers must be done before the
// call ends. Many segments go in trains, an epoch and a record each.
#include <algorithm>

#include "exec/bcast_record.h"
#include "exec/copy_block.h"
#include "exec/exchange.h"
#include "exec/walk.h"
#include "heap/segment.h"

namespace coco::exec {
namespace {

using channel::Publish;
using schedule::Area;
using schedule::Milestone;
using schedule::Place;

// Not from the caches, which may differ from node to node. Over TCP on 4 nodes 8, 32 and 64 KiB were slower.
constexpr std::uint64_t kSegmentBytes = 16 * 1024;
// A network's latency does not care about a look at the stage too, and there is room for hundreds of calls:
// on the tape the root would soon wait for its mates (2 KiB on 4 x 2 ranks: 0.7 times as fast as MPICH,
// 1.06 from the
// stage).
constexpr std::uint64_t kTapeBytesMax = 256;
// Below, a second copy costs less than to wait for readers: 64 KiB on 4 nodes 0.2 to 0.4 ms, not 0.7 ms.
constexpr std::uint64_t kAliasBytesMin = 128 * 1024;

// A scatter wants a part for each node.
std::uint64_t unit_bytes_for(std::uint64_t bytes, const algorithms::Parameters& parameters,
                             std::uint64_t nodes) {
    std::uint64_t segment = parameters.segment_bytes != 0 ? parameters.segment_bytes : kSegmentBytes;
    if (parameters.route == algorithms::Route::scatter) segment = std::min(segment, bytes / nodes);
    return std::min(bytes, std::clamp<std::uint64_t>(base::round_up(segment, 64), 1024, kSegmentBytesMax));
}

Publish way_of(const std::byte* buffer, std::uint64_t bytes, std::uint64_t unit_bytes) {
    if (bytes <= kTapeBytesMax && bytes == unit_bytes) return Publish::inlined;
    if (bytes >= kAliasBytesMin && heap::is_shared(buffer, bytes)) return Publish::direct;
    return bytes == unit_bytes ? Publish::staged : Publish::segmented;
}

struct Whole {
    std::byte* buffer;
    std::uint64_t bytes;
    std::uint64_t unit_bytes;   // of a segment; the last one may be shorter
    std::uint64_t train_bytes;  // likewise
    Publish way;                // who publishes, goes this one
    std::uint64_t room_bytes;   // of the buffer: a mate's may be another
};

// One train.
class TrainView {
  public:
    static constexpr bool kRows = false;

    // record: what a mate follows.
    TrainView(comm::Comm& comm, const Whole& whole, std::uint64_t at, const schedule::Schedule& schedule,
              const BcastRecord& record)
        : comm_(comm),
          channel_(comm.channel),
          whole_(whole),
          base_(whole.buffer + at),
          bytes_(std::min(whole.bytes - at, whole.train_bytes)),
          room_bytes_(whole.room_bytes - std::min(whole.room_bytes, at)),
          scratch_blocks_(static_cast<std::uint64_t>(schedule.scratch_blocks)),
          record_(record) {}

    bool publishes() const { return scratch_blocks_ != 0; }
    bool is_alias() const { return (publishes() ? whole_.way : record_.tale().publish) == Publish::direct; }

    // From scratch or to it: the other place has the segment's number.
    void copy(Place from, Place to) {
        bool fills = to.area == Area::scratch;
        if (fills && !record_.is_open()) open();
        if (fills && is_alias()) return;
        std::uint64_t at = offset(fills ? from : to);
        std::uint64_t end = std::min(bytes_, room_bytes_);
        if (at >= end) return;
        std::uint64_t bytes = std::min(whole_.unit_bytes, end - at);
        std::byte* scratch = record_.shown() + (is_alias() ? at : offset(fills ? to : from));
        if (fills)
            copy_block(scratch, base_ + at, bytes);
        else if (outgrows_caches(2 * bytes_))
            copy_streaming(base_ + at, scratch, bytes);
        else
            copy_block(base_ + at, scratch, bytes);
    }

    void wait(std::int32_t peer, Milestone milestone) {
        if (publishes() && is_alias()) return;                        // for room in the ring
        if (!publishes() && milestone == schedule::kArrived) return;  // the record was waited for
        channel_.wait_milestone(peer, milestone);
    }
    void raise(Milestone milestone) {
        if (publishes() && milestone == schedule::kArrived) return record_.publish(comm_);
        channel_.raise(milestone);
    }

    void send(std::int32_t to, Place first, std::int32_t blocks) {
        comm_.wire->send_marked(to, base_ + offset(first), bytes_of(first, blocks), mark());
    }
    void receive(std::int32_t from, Place first, std::int32_t blocks) {
        comm_.wire->receive_marked(from, base_ + offset(first), bytes_of(first, blocks), mark());
    }
    void complete(std::int32_t left) {
        std::int32_t unlike = comm_.complete(static_cast<std::size_t>(left));
        if (unlike != mpi::Wire::kNobody) stop_unequal(comm_, unlike);
    }

  private:
    std::uint64_t offset(Place place) const {
        return static_cast<std::uint64_t>(place.index) * whole_.unit_bytes;
    }
    std::uint64_t bytes_of(Place first, std::int32_t blocks) const {
        return std::min(static_cast<std::uint64_t>(blocks) * whole_.unit_bytes, bytes_ - offset(first));
    }

    // Not before there is something to show: old readers may have to be waited for.
    void open() {
        record_.open(comm_, {whole_.way, whole_.bytes, whole_.unit_bytes}, base_,
                     scratch_blocks_ * whole_.unit_bytes);
    }

    // Of the whole length and the call.
    int mark() const {
        std::uint64_t mixed = (whole_.bytes * 31 + channel_.epoch()) * 0x9E3779B97F4A7C15u;
        return static_cast<int>((mixed >> 32) % mpi::Wire::kMarks);
    }

    comm::Comm& comm_;
    channel::Channel& channel_;
    const Whole& whole_;
    std::byte* const base_;
    const std::uint64_t bytes_, room_bytes_;
    const std::uint64_t scratch_blocks_;
    BcastRecord record_;  // of the rank that publishes
};

// The rank that publishes on this one's node.
std::int32_t leader_of(const comm::Comm& comm, std::int32_t root) {
    auto node_of = [&](std::int32_t rank) { return comm.map.node[static_cast<std::size_t>(rank)]; };
    if (node_of(root) == node_of(comm.rank) || comm.mates.empty()) return root;
    return std::min(comm.rank, comm.mates.front());
}

std::uint64_t train_bytes_of(const comm::Comm& comm, std::uint64_t unit_bytes) {
    return std::max(kTrain, static_cast<std::uint64_t>(comm.nodes)) * unit_bytes;
}

// Returns: whether this rank published what its mates read in place.
bool run_train(comm::Comm& comm, comm::ScheduleKey key, const Whole& whole, std::uint64_t at,
               const BcastRecord& record) {
    std::uint64_t bytes = std::min(whole.bytes - at, whole.train_bytes);
    key.segments = static_cast<std::int32_t>((bytes + whole.unit_bytes - 1) / whole.unit_bytes);
    const schedule::Schedule& schedule = comm.schedule_for(key);
    TrainView view(comm, whole, at, schedule, record);
    walk(schedule, view);
    return view.publishes() && view.is_alias();
}

void lead(comm::Comm& comm, const comm::ScheduleKey& key, const Whole& whole) {
    bool is_read = false;
    for (std::uint64_t at = 0; at < whole.bytes; at += whole.train_bytes) {
        if (at != 0) comm.channel.begin_epoch();
        is_read = run_train(comm, key, whole, at, {});
    }
    for (std::int32_t mate : comm.mates)
        if (is_read) comm.channel.wait_milestone(mate, schedule::kDone);
}

// What the leader tells counts, not what this rank thinks: what fits is received. Returns: how much was sent.
std::uint64_t follow(comm::Comm& comm, const comm::ScheduleKey& key, std::int32_t leader, const Side& side,
                     const Buffer& user, std::uint64_t room_bytes) {
    Whole whole{side.base, 1, 1, 1, Publish::staged, room_bytes};
    for (std::uint64_t at = 0; at < whole.bytes; at += whole.train_bytes) {
        if (at != 0) comm.channel.begin_epoch();
        BcastRecord record;
        record.follow(comm, leader, comm.channel.next_record(leader));
        if (!record.is_of_call()) stop_unequal(comm, leader);
        const BcastRecord::Tale& tale = record.tale();
        whole.bytes = tale.total_bytes;
        whole.unit_bytes = tale.publish == Publish::inlined ? tale.total_bytes : tale.segment_bytes;
        whole.train_bytes = train_bytes_of(comm, whole.unit_bytes);
        if (at == 0 && whole.bytes < room_bytes) fill_side(side, user, room_bytes);  // the rest must stay
        run_train(comm, key, whole, at, record);
    }
    return whole.bytes;
}

}  // namespace

Outcome run_bcast_over_nodes(comm::Comm& comm, const Call& call, const algorithms::Algorithm& algorithm,
                             const algorithms::Parameters& parameters) {
    const std::uint64_t bytes = call.local.bytes;
    const bool is_root = comm.rank == call.common.root;
    const Buffer& user = is_root ? call.local.send : call.local.recv;
    if (bytes == 0) {  // on all ranks
        comm.channel.raise(schedule::kDone);
        return {.ran = &algorithm};
    }
    Side side{.base = user.base, .blocks = {}};
    if (user.packer != nullptr) {
        side.where = Where::private_room;
        side.base = fetch_room(comm, 2, bytes);  // shared as often as not: any use of it will do
        if (side.base == nullptr) stop_without_memory(bytes);
    }
    if (is_root) fill_side(side, user, bytes);
    const comm::ScheduleKey key{&algorithm, algorithms::Exchange::bcast, call.common.root, 1, parameters};
    const std::int32_t leader = leader_of(comm, call.common.root);
    Outcome outcome{.staged = side.where != Where::user, .ran = &algorithm};
    if (leader == comm.rank || comm.mates.empty()) {
        std::uint64_t unit_bytes = unit_bytes_for(bytes, parameters, static_cast<std::uint64_t>(comm.nodes));
        lead(comm, key,
             {side.base, bytes, unit_bytes, train_bytes_of(comm, unit_bytes),
              way_of(side.base, bytes, unit_bytes), bytes});
    } else {
        outcome.measure(follow(comm, key, leader, side, user, bytes), bytes);
    }
    if (!is_root) empty_side(side, user, bytes);
    return outcome;
}

}  // namespace coco::exec
