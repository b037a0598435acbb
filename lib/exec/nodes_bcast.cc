// SPDX-License-Identifier: BSD-3-Clause
//
// Bcast over several nodes. Every leader cuts its buffer in the same way, by its length, which MPI makes
// equal, and the parameters: a segment is a message, whose mark tells that its sender thinks of the same
// length. On a node the one rank with scratch publishes as the root does in bcast.cc, on its tape, and alone
// decides how: in the record, on its stage, or, if its buffer is on the shared heap, there: scratch is then
// an alias of the buffer. Nothing is copied to it, nor does it fill, but its readers must be done before the
// call ends. Many segments go in trains, an epoch and a record each.
#include <algorithm>

#include "base/check.h"
#include "base/index.h"
#include "blocks/copy_block.h"
#include "blocks/side.h"
#include "exec/bcast_record.h"
#include "exec/limits.h"
#include "exec/signature.h"
#include "exec/walk.h"
#include "exec/ways.h"
#include "heap/segment.h"

namespace coco::exec {
namespace {

using blocks::Buffer;
using blocks::Side;
using blocks::Where;
using channel::Publish;
using schedule::Area;
using schedule::Milestone;
using schedule::Place;

// Not derived from the caches, which may differ from node to node. Over TCP on 4 nodes 8, 32 and 64 KiB were
// slower.
constexpr std::uint64_t kSegmentBytes = 16 * 1024;
// Longer buffers are staged. Beside a network's latency a look at the stage, too, costs next to nothing, and
// the stage has room for hundreds of calls: on the tape the root would soon wait for its mates (2 KiB on 4 x
// 2 ranks: 0.7 times as fast as MPICH, 1.06 from the stage).
constexpr std::uint64_t kTapeBytesMax = 256;
// Below this, a second copy costs less than to wait for readers: 64 KiB on 4 nodes 0.2 to 0.4 ms, not 0.7 ms.
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
    std::uint64_t unit_bytes;   // size of a segment; the last one may be shorter
    std::uint64_t train_bytes;  // size of a train, likewise
    Publish way;                // how the rank that publishes does so
    std::uint64_t room_bytes;   // size of the buffer: on a mate it may differ
};

// One train of segments.
class NodesTrain {
  public:
    static constexpr bool kRows = false;

    // record: the one that a mate follows, or that this rank publishes.
    NodesTrain(const Order& order, const comm::ScheduleKey& key, const Whole& whole, std::uint64_t at,
               BcastRecord& record)
        : comm_(order.comm),
          channel_(order.lane.channel),
          post_(order.lane.post),
          whole_(whole),
          base_(whole.buffer + at),
          bytes_(std::min(whole.bytes - at, whole.train_bytes)),
          room_bytes_(whole.room_bytes - std::min(whole.room_bytes, at)),
          schedule_(order.comm.bcast_schedule_for(with_segments(key))),
          scratch_blocks_(base::index(schedule_->scratch_blocks)),
          record_(record) {}

    void run() { walk(*schedule_, *this); }
    bool publishes() const { return scratch_blocks_ != 0; }
    bool is_alias() const {
        return (publishes() ? whole_.way : record_.contents().publish) == Publish::direct;
    }

    // The record is not opened before there is something to show: old readers may have to be waited for.
    void open_for(const schedule::Step& step) {
        if (step.target_area == Area::scratch && !record_.is_open())
            record_.open(channel_, {whole_.way, whole_.bytes, whole_.unit_bytes}, base_,
                         scratch_blocks_ * whole_.unit_bytes);
    }

    // Copies from scratch or to it: the index of the other place is the segment's number.
    void copy(Place from, Place to) {
        bool fills = to.area == Area::scratch;
        if (fills && is_alias()) return;
        std::uint64_t at = offset(fills ? from : to);
        std::uint64_t end = std::min(bytes_, room_bytes_);
        if (at >= end) return;
        std::uint64_t bytes = std::min(whole_.unit_bytes, end - at);
        std::byte* scratch = record_.shown() + (is_alias() ? at : offset(fills ? to : from));
        if (fills)
            blocks::copy_block(scratch, base_ + at, bytes);
        else if (outgrows_caches(2 * bytes_))
            blocks::copy_streaming(base_ + at, scratch, bytes);
        else
            blocks::copy_block(base_ + at, scratch, bytes);
    }

    void wait(std::int32_t peer, Milestone milestone) {
        if (publishes() && is_alias()) return;                        // for room in the ring
        if (!publishes() && milestone == schedule::kArrived) return;  // the record was waited for
        channel_.wait_milestone(peer, milestone);
    }
    void raise(Milestone milestone) {
        if (publishes() && milestone == schedule::kArrived) return record_.publish(channel_);
        channel_.raise(milestone);
    }

    void send(std::int32_t to, Place first, std::int32_t blocks) {
        post_.wire->send_marked(to, base_ + offset(first), bytes_of(first, blocks), mark());
    }
    void receive(std::int32_t from, Place first, std::int32_t blocks) {
        post_.wire->receive_marked(from, base_ + offset(first), bytes_of(first, blocks), mark());
    }
    void complete(std::int32_t left) {
        const std::int32_t unlike = post_.complete(channel_, base::index(left));
        if (unlike != mpi::Wire::kNobody) stop_unequal(comm_, unlike);
    }

  private:
    comm::ScheduleKey with_segments(comm::ScheduleKey key) const {
        COCO_CHECK_DEAR(bytes_ != 0 && whole_.unit_bytes != 0, "a train has segments, and these have bytes");
        key.segments = base::number((bytes_ + whole_.unit_bytes - 1) / whole_.unit_bytes);
        return key;
    }
    std::uint64_t offset(Place place) const { return base::index(place.index) * whole_.unit_bytes; }
    std::uint64_t bytes_of(Place first, std::int32_t blocks) const {
        COCO_CHECK_DEAR(blocks > 0 && offset(first) < bytes_, "a message has segments of its train");
        return std::min(base::index(blocks) * whole_.unit_bytes, bytes_ - offset(first));
    }

    // The mark of a message, made from the whole length and the epoch.
    int mark() const {
        std::uint64_t mixed = (whole_.bytes * 31 + channel_.epoch()) * 0x9E3779B97F4A7C15u;
        return static_cast<int>((mixed >> 32) % mpi::Wire::kMarks);
    }

    comm::Comm& comm_;
    channel::Channel& channel_;
    messages::Post& post_;
    const Whole& whole_;
    std::byte* const base_;
    const std::uint64_t bytes_, room_bytes_;
    std::shared_ptr<const schedule::Schedule> schedule_;
    const std::uint64_t scratch_blocks_;
    BcastRecord& record_;
};

// The rank that publishes on this one's node.
std::int32_t leader_of(const comm::Comm& comm, std::int32_t root) {
    auto node_of = [&](std::int32_t rank) { return comm.map.node[base::index(rank)]; };
    if (node_of(root) == node_of(comm.rank) || comm.mates.empty()) return root;
    return std::min(comm.rank, comm.mates.front());
}

std::uint64_t train_bytes_of(const comm::Comm& comm, std::uint64_t unit_bytes) {
    return std::max(kTrain, base::index(comm.map.nodes())) * unit_bytes;
}

class NodesBcastFlight final {
  public:
    Outcome outcome;

    // Requires: the buffers are not empty.
    explicit NodesBcastFlight(const Order& order)
        : order_(order),
          channel_(order.lane.channel),
          is_root_(order.comm.rank == order.call.common.root),
          user_(is_root_ ? order.call.local.send : order.call.local.recv),
          bytes_(order.call.local.bytes),
          key_{&order.algorithm, algorithms::Exchange::bcast, order.call.common.root, 1, order.parameters},
          leader_(leader_of(order.comm, order.call.common.root)),
          leads_(leader_ == order.comm.rank || order.comm.mates.empty()) {
        COCO_CHECK_DEAR(bytes_ != 0, "an empty bcast is over before it begins");
        side_.base = user_.base;
        if (user_.packer != nullptr) {
            side_.where = Where::private_room;
            // This memory may be on the shared heap or not: either will do.
            side_.base = blocks::fetch(order.lane.blocks.private_send, bytes_);
            if (side_.base == nullptr) blocks::stop_without_memory(bytes_);
        }
        if (is_root_) fill_side(side_, user_, bytes_);
        outcome.staged = side_.where != Where::user;
        outcome.ran = &order.algorithm;
        whole_ = {side_.base, 1, 1, 1, Publish::staged, bytes_};
        if (!leads_) return;
        std::uint64_t unit_bytes =
            unit_bytes_for(bytes_, order.parameters, base::index(order.comm.map.nodes()));
        whole_ = {side_.base,
                  bytes_,
                  unit_bytes,
                  train_bytes_of(order.comm, unit_bytes),
                  way_of(side_.base, bytes_, unit_bytes),
                  bytes_};
    }

    void run() {
        for (std::uint64_t at = 0; at < whole_.bytes; at += whole_.train_bytes) {
            if (at != 0) channel_.begin_epoch();
            run_train(at);
        }
        // Mates may read the last train's buffer in place.
        if (leads_ && is_read_)
            for (const std::int32_t mate : order_.comm.mates) channel_.wait_milestone(mate, schedule::kDone);
        if (!leads_) outcome.measure(whole_.bytes, bytes_);
        if (!is_root_) blocks::empty_side(side_, user_, bytes_);
    }

  private:
    void run_train(std::uint64_t at) {
        BcastRecord record;
        if (!leads_) follow(record, at);
        NodesTrain train(order_, key_, whole_, at, record);
        train.run();
        is_read_ = train.publishes() && train.is_alias();
    }

    // Follows the leader's record: its length counts, not this rank's own, and as many bytes as fit are
    // received.
    void follow(BcastRecord& record, std::uint64_t at) {
        record.follow(channel_, leader_, channel_.next_record(leader_));
        if (!record.is_of_call()) stop_unequal(order_.comm, leader_);
        const BcastRecord::Contents& contents = record.contents();
        whole_.bytes = contents.total_bytes;
        whole_.unit_bytes =
            contents.publish == Publish::inlined ? contents.total_bytes : contents.segment_bytes;
        whole_.train_bytes = train_bytes_of(order_.comm, whole_.unit_bytes);
        if (at == 0 && whole_.bytes < bytes_) fill_side(side_, user_, bytes_);  // the rest must stay
    }

    const Order order_;
    channel::Channel& channel_;
    const bool is_root_;
    const Buffer& user_;
    const std::uint64_t bytes_;  // the size of this rank's buffer
    const comm::ScheduleKey key_;
    const std::int32_t leader_;
    const bool leads_;
    Side side_{.base = nullptr, .blocks = {}};
    Whole whole_{};
    bool is_read_ = false;  // this rank published what its mates read in place
};

}  // namespace

Outcome run_bcast_over_nodes(const Order& order) {
    COCO_CHECK_DEAR(order.lane.post.wire != nullptr, "a bcast over nodes has a wire");
    if (order.call.local.bytes == 0) return run_nothing(order, stats::Reason::none);  // on all ranks
    return fly<NodesBcastFlight>(order);
}

}  // namespace coco::exec
