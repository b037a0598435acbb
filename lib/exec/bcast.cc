// SPDX-License-Identifier: BSD-3-Clause
//
// Bcast. The root alone publishes, on its tape: how long its buffer is and how it can be had. The others
// follow the record, not their own arguments, so that a private buffer at the root changes no rank's
// path, nor does a longer one at a receiver, unless a rule leaves one of the two lengths to MPI. A buffer in
// many segments goes in trains of at most kTrain, each an epoch and a record of its own.
#include <algorithm>

#include "base/index.h"
#include "blocks/copy_block.h"
#include "blocks/side.h"
#include "exec/bcast_record.h"
#include "exec/limits.h"
#include "exec/walk.h"
#include "exec/ways.h"
#include "heap/segment.h"
#include "os/probe.h"

namespace coco::exec {
namespace {

using blocks::Buffer;
using blocks::Side;
using blocks::Where;
using channel::Header;
using channel::Publish;
using schedule::Area;
using schedule::Milestone;
using schedule::Place;

// Longer than kInlineBytesMax, a buffer is staged in one piece up to here: so the root can run some calls
// ahead.
constexpr std::uint64_t kStagedBytesMax = channel::kStageBytes / 8;

// The registry's row that moves a buffer published in this way.
inline const algorithms::Algorithm& row_that_moves(Publish publish) {
    using algorithms::Executor;
    constexpr auto kBcast = algorithms::Collective::bcast;
    struct Rows {
        const algorithms::Algorithm& pull = row_for(kBcast, Executor::pull);
        const algorithms::Algorithm& ring = row_for(kBcast, Executor::ring);
        const algorithms::Algorithm& scratch = row_for(kBcast, Executor::scratch);
    };
    static const Rows rows;
    if (publish == Publish::direct) return rows.pull;
    return publish == Publish::segmented ? rows.ring : rows.scratch;
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
    if (algorithm.reads_peer_send() && heap::is_shared(buffer, way.bytes)) return way;
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

// One epoch of the call, which moves [base, base + bytes) of this rank's buffer.
class Train {
  public:
    static constexpr bool kRows = false;

    // On the root it publishes `record`, which its raise of kArrived shows; on a reader it follows the
    // record.
    Train(const Order& order, const Way& way, std::byte* base, std::uint64_t bytes, BcastRecord& record)
        : channel_(order.lane.channel),
          root_(order.call.common.root),
          way_(way),
          base_(base),
          bytes_(bytes),
          unit_bytes_(way.publish == Publish::segmented ? way.segment_bytes : bytes),
          streaming_(outgrows_caches(2 * bytes)),
          record_(record),
          schedule_(order.comm.bcast_schedule_for(
              {&row_that_moves(way.publish), algorithms::Exchange::bcast, root_, segments()})) {}

    // Called on the root.
    void open(std::uint64_t total_bytes) {
        record_.open(channel_, {way_.publish, total_bytes, way_.segment_bytes}, base_, scratch_bytes());
        source_ = base_;
    }
    // Called on a reader. room_bytes: the buffer has room for no more than this. layout: the buffer has
    // holes, and this train's data begin at its place `layout_at`.
    void follow(std::uint64_t room_bytes, const blocks::BlockLayout& layout, std::uint64_t layout_at) {
        source_ = record_.shown();
        room_bytes_ = room_bytes;
        layout_ = layout;
        layout_at_ = layout_at;
    }
    void run() { walk(*schedule_, *this); }

    void copy(Place from, Place to) {
        // The segment's number is the index of the place that is not scratch.
        std::int32_t segment = from.area == Area::scratch ? to.index : from.index;
        std::uint64_t at = base::index(segment) * unit_bytes_;
        std::uint64_t end = std::min(bytes_, room_bytes_);
        if (at >= end) return;
        std::uint64_t bytes = std::min(unit_bytes_, end - at);
        const std::byte* source = from.area == Area::scratch
                                      ? record_.shown() + base::index(from.index) * unit_bytes_
                                      : source_ + at;
        if (layout_.words != nullptr && to.area != Area::scratch)
            return blocks::copy_data({base_, layout_, layout_at_ + at}, {source}, bytes, streaming_);
        std::byte* target =
            to.area == Area::scratch ? record_.shown() + base::index(to.index) * unit_bytes_ : base_ + at;
        if (streaming_ && to.area != Area::scratch) [[unlikely]]
            blocks::copy_streaming(target, source, bytes);
        else
            blocks::copy_block(target, source, bytes);
    }

    void wait(std::int32_t peer, Milestone milestone) {
        const bool record = peer == root_ && milestone == schedule::kArrived;  // the record was waited for
        if (!record) channel_.wait_milestone(peer, milestone);
    }

    // kArrived is shown by the record, later segments by the root's flag: both are raised in order.
    void raise(Milestone milestone) {
        if (record_.is_open() && milestone == schedule::kArrived)
            record_.publish(channel_);
        else
            channel_.raise(milestone);
    }

  private:
    std::int32_t segments() const {
        return unit_bytes_ == 0 ? 1 : base::number((bytes_ + unit_bytes_ - 1) / unit_bytes_);
    }
    // The bytes of this epoch's scratch: a ring of segments, or the whole buffer.
    std::uint64_t scratch_bytes() const {
        std::uint64_t ring = std::min<std::uint64_t>(base::index(segments()), kRingSegments);
        return way_.publish == Publish::segmented ? ring * unit_bytes_ : bytes_;
    }

    channel::Channel& channel_;
    const std::int32_t root_;
    const Way& way_;
    std::byte* const base_;
    const std::uint64_t bytes_, unit_bytes_;
    std::uint64_t room_bytes_ = UINT64_MAX;
    blocks::BlockLayout layout_;  // of a reader's buffer with holes, from base_ on
    std::uint64_t layout_at_ = 0;
    const bool streaming_;
    BcastRecord& record_;
    const std::byte* source_ = nullptr;
    std::shared_ptr<const schedule::Schedule> schedule_;
};

// The eager schedule of a buffer that travels on the tape itself, spelled out: a copy and a raise on each
// rank. Walking it costs as much again (bench/collective, 8 B: 0.10 us against 0.07 us). Buffers with holes
// are packed there, and unpacked from there.

void note_refused(Outcome& outcome) {
    outcome.reason = stats::Reason::device_memory;
    outcome.closes = true;
}

// The root alone decides: readers follow its records. A communicator's first calls touch the few pages of the
// tape, later ones the many of the stage.
bool fits_tape(const Order& order) {
    const bool is_packed = order.call.local.send.packer != nullptr;
    const bool is_early = order.lane.channel.epoch() < kEarlyEpochs;
    return order.algorithm.is_eager() &&
           order.call.local.bytes <= (is_packed || is_early ? kTapedBytesMax : kInlineBytesMax);
}

void publish_on_tape(channel::Channel& channel, const Buffer& user, std::uint64_t bytes) {
    delay_if_asked();
    Header header = Header::of(Publish::inlined, bytes);
    const channel::Record record = channel.open_record(header);
    if (user.packer != nullptr)
        user.packer->pack(0, record.payload());
    else
        blocks::copy_block(record.payload(), user.base, bytes);
    channel.publish(record, header);
    channel.raise(schedule::kDone);
}

// A root whose buffer is in memory of a device, which only the MPI library can move, has all ranks hand the
// call back.
void refuse(channel::Channel& channel, Outcome& outcome) {
    const Header header = Header::of(Publish::refuse, 0);
    const channel::Record record = channel.open_record(header);
    channel.publish(record, header);
    channel.raise(schedule::kDone);
    note_refused(outcome);
}

// Returns: whether the record holds the buffer, which then is received, or says that the call is handed back.
bool receive_from_tape(channel::Channel& channel, channel::Record record, const Order& order,
                       Outcome& outcome) {
    const Buffer& user = order.call.local.recv;
    const std::uint64_t room_bytes = order.call.local.bytes;
    Header header{record.header->load(std::memory_order_relaxed)};  // next_record() has acquired it
    if (header.publish() == Publish::refuse) [[unlikely]] {
        channel.raise(schedule::kDone);
        note_refused(outcome);
        return true;
    }
    if (header.publish() != Publish::inlined) return false;
    if (user.packer != nullptr && header.bytes() < room_bytes) return false;  // it unpacks whole buffers
    delay_if_asked();
    outcome.measure(header.bytes(), room_bytes);
    if (user.packer != nullptr)
        user.packer->unpack(0, record.payload());
    else
        blocks::copy_block(user.base, record.payload(), std::min(header.bytes(), room_bytes));
    channel.raise(schedule::kDone);
    return true;
}

class BcastFlight final {
  public:
    Outcome outcome;

    // first: a reader's record that opens the call.
    BcastFlight(const Order& order, channel::Record first)
        : order_(order),
          channel_(order.lane.channel),
          is_root_(order.comm.rank == order.call.common.root),
          user_(is_root_ ? order.call.local.send : order.call.local.recv),
          bytes_(order.call.local.bytes),
          wanted_segment_bytes_(order.parameters.segment_bytes),
          first_(first) {}

    void run() {
        make_ready();
        if (is_root_) return send_trains();
        receive_trains();
        blocks::empty_side(side_, user_, bytes_);
    }

  private:
    void make_ready() {
        side_.base = user_.base;
        if (!is_root_) layout_ = user_.layout_of_block(0);
        if (user_.packer != nullptr && bytes_ != 0 && layout_.words == nullptr) {
            // A root packs into shared room, to be read there, if it can; otherwise peers read the record or
            // the stage.
            blocks::Store& store = order_.lane.blocks;
            side_.base = is_root_ ? blocks::fetch_shared(store.shared_send, bytes_) : nullptr;
            if (side_.base == nullptr) side_.base = blocks::fetch(store.private_send, bytes_);
            if (side_.base == nullptr) blocks::stop_without_memory(bytes_);
            side_.where = Where::private_room;
        }
        outcome.staged = side_.where != Where::user;
        fill_side(side_, user_, bytes_);  // a receiver's too: what is not received must stay as it is
        if (!is_root_) return;
        way_ = choose_way(order_.call, side_.base, order_.algorithm, wanted_segment_bytes_);
        outcome.ran = &row_that_moves(way_.publish);
    }

    // Each train has an epoch of its own; the call's first epoch is begun already.
    void send_trains() {
        for (std::uint64_t at = 0; at == 0 || at < way_.bytes; at += bytes_per_epoch(way_)) {
            if (at != 0) channel_.begin_epoch();
            BcastRecord record;
            Train train(order_, way_, side_.base + at, std::min(bytes_per_epoch(way_), way_.bytes - at),
                        record);
            train.open(way_.bytes);  // an empty buffer is published, too
            train.run();
        }
    }

    // Receives as many bytes as fit.
    void receive_trains() {
        std::uint64_t at = 0;
        do {
            if (at != 0) channel_.begin_epoch();
            receive_train(at);
            at += bytes_per_epoch(way_);
        } while (at < way_.bytes);
        outcome.measure(way_.bytes, bytes_);
    }

    void receive_train(std::uint64_t at) {
        const std::int32_t root = order_.call.common.root;
        BcastRecord record;
        record.follow(channel_, root, at == 0 ? first_ : channel_.next_record(root));
        const BcastRecord::Contents& contents = record.contents();
        way_ = {contents.publish, contents.total_bytes, contents.segment_bytes};
        outcome.ran = &row_that_moves(way_.publish);
        const bool has_layout = layout_.words != nullptr;
        Train train(order_, way_, has_layout ? side_.base : side_.base + at,
                    std::min(bytes_per_epoch(way_), way_.bytes - at), record);
        train.follow(bytes_ > at ? bytes_ - at : 0, layout_, at);
        train.run();
    }

    const Order order_;
    channel::Channel& channel_;
    const bool is_root_;
    const Buffer& user_;
    const std::uint64_t bytes_;  // the size of this rank's buffer
    const std::uint64_t wanted_segment_bytes_;
    const channel::Record first_;  // a reader's: the record that opens the call
    Side side_{.base = nullptr, .stride_bytes = 0, .blocks = {}};
    blocks::BlockLayout layout_;  // a reader's, to which it copies what arrives
    Way way_;
};

}  // namespace

// Calls with small buffers are over before a flight would be made.
Outcome run_bcast(const Order& order) {
    channel::Record first;
    channel::Channel& channel = order.lane.channel;
    Outcome outcome{.ran = &row_that_moves(Publish::inlined)};
    if (order.comm.rank != order.call.common.root) {
        first = channel.next_record(order.call.common.root);
        if (receive_from_tape(channel, first, order, outcome)) return outcome;
    } else if (order.call.local.send.on_device) {
        refuse(channel, outcome);
        return outcome;
    } else if (fits_tape(order)) {
        publish_on_tape(channel, order.call.local.send, order.call.local.bytes);
        return outcome;
    }
    return fly<BcastFlight>(order, first);
}

}  // namespace coco::exec
