// SPDX-License-Identifier: BSD-3-Clause
//
// How a rank's blocks can be had by its neighbours on the node: it decides, lays out its piece of the stage
// ring and fills in its slot.
#include "base/check.h"
#include "base/index.h"
#include "exec/neighbor_flight.h"
#include "os/cpu.h"

namespace coco::exec {

using blocks::BlockAt;
using blocks::Buffer;
using blocks::Side;
using blocks::StagedBlock;
using blocks::Where;
using blocks::Which;
using channel::Publish;
using os::line_up;
using schedule::Area;

namespace {

// The most bytes of a table of blocks: two such tables and two sides fit the stage ring.
constexpr std::uint64_t kTableBytesMost = (channel::kStageBytes - 2 * blocks::kSideLimitBytes) / 2;

std::uint64_t total_of(const Buffer& buffer, bool sized) {
    return sized ? buffer.total_bytes : base::index(buffer.block_count) * buffer.block_bytes;
}

// Whether the first runs of a buffer's blocks are parts of lines, which peers would read one by one.
bool has_short_runs(const Buffer& buffer) {
    return std::ranges::any_of(buffer.layouts, [](const blocks::BlockLayout& layout) {
        return layout.words != nullptr && blocks::Cursor(nullptr, layout, 0).stretch().bytes <
                                              static_cast<std::int64_t>(os::kLeastLineBytes);
    });
}

// Blocks of plain forms have no table.
bool has_long_table(const Buffer& buffer) { return buffer.blocks.size() * sizeof(BlockAt) > kTableBytesMost; }

}  // namespace

std::uint64_t NeighborFlight::send_total() const { return total_of(call_.local.send, sized_); }

std::uint64_t NeighborFlight::table_bytes() const {
    return sized_ ? call_.local.send.blocks.size() * sizeof(StagedBlock) : 0;
}

std::span<const std::int32_t> NeighborFlight::unread() const {
    return personal_ ? std::span<const std::int32_t>(near_.unread) : std::span<const std::int32_t>();
}

std::uint64_t NeighborFlight::out_bytes() const {
    std::uint64_t bytes = table_bytes() + send_total();
    if (sized_)
        for (std::int32_t i : unread()) bytes -= call_.local.send.blocks[base::index(i)].bytes;
    return bytes;
}

bool NeighborFlight::wants_copies() const {
    const Buffer& send = call_.local.send;
    if (!near_.has_readers || algorithm_.reads_peer_send()) return false;
    const std::uint64_t bytes = out_bytes();
    if (bytes > blocks::kSideLimitBytes) return false;
    return !sized_ || bytes - table_bytes() <= eager_bytes(channel_) || send.packer != nullptr ||
           !blocks::is_shared(send, send.block_bytes);
}

bool NeighborFlight::goes_through_kernel() const {
    const Buffer& send = call_.local.send;
    // Ranks ask for messages by the streams of a control block.
    if (!is_exposed() || writes_ || send.packer != nullptr || has_long_table(send) ||
        base::index(comm_.ranks) > channel::kNodeRanks)
        return false;
    std::int32_t reads = base::number(plan_.readers.size());
    std::uint64_t bytes = out_bytes();
    if (personal_) {
        reads = 0;
        for (const comm::Neighbors::Run& run : near_.read_by_mates) reads += run.count;
        if (!sized_) bytes = base::index(reads) * send.block_bytes;
    }
    if (bytes <= blocks::piped_above_bytes(reads + 1) || blocks::is_shared(send, send.block_bytes))
        return false;
    channel_.show_thread();
    return channel_.can_read_mates();
}

bool NeighborFlight::can_lay_out(const Buffer& buffer) const {
    return comm_.map.nodes() == 1 && !algorithm_.writes_peer_recv() && buffer.has_layouts() &&
           !has_long_table(buffer);
}

// Up to the limit of a side blocks are gathered first: to read single words of a peer's lines takes longer.
Side NeighborFlight::plan(const Buffer& buffer, bool exposed, Which which, Holes holes) {
    const std::uint64_t by_layout_above_bytes =
        which == Which::send ? blocks::kSideLimitBytes : blocks::piped_above_bytes(1);
    return plan_side(store_, buffer,
                     {.exposed = exposed,
                      .must_copy = false,
                      .if_private = stats::Reason::send_private,
                      .block_bytes = buffer.block_bytes,
                      .bytes = total_of(buffer, sized_),
                      .piped_above_bytes = holes == Holes::by_layout ? by_layout_above_bytes : 0,
                      .copies_any = holes == Holes::gathered},
                     which);
}

void NeighborFlight::plan_send() {
    const Buffer& send = call_.local.send;
    Holes holes = Holes::packed;
    if (can_lay_out(send) && is_exposed()) {
        if (!has_short_runs(send)) send_ = plan(send, true, Which::send, Holes::by_layout);
        // Not in private memory, of which only pieces could be shown.
        shows_layouts_ = send_.where == Where::pipe && send_.piped == channel::Piped::shared;
        if (shows_layouts_) return;
        holes = Holes::gathered;
    }
    if (goes_through_kernel()) {
        send_ = plan(send, false, Which::send);
        send_.where = Where::pipe;
        send_.piped = channel::Piped::address;
        return;
    }
    copies_out_ = wants_copies();
    send_ = plan(send, is_exposed() && !copies_out_, Which::send, holes);
    by_message_ =
        send_.refusal != stats::Reason::none || (has_long_table(send) && is_exposed() && !copies_out_);
    if (by_message_) send_ = plan(send, false, Which::send);
}

void NeighborFlight::plan_recv() {
    const Buffer& recv = call_.local.recv;
    recv_ = plan(recv, writes_, Which::recv, can_lay_out(recv) ? Holes::by_layout : Holes::packed);
    ready_for_writers_ =
        writes_ && !by_message_ && recv_.refusal == stats::Reason::none && !has_long_table(recv);
    if (writes_ && !ready_for_writers_) recv_ = plan(recv, false, Which::recv);
}

void NeighborFlight::place() {
    const Buffer &send = call_.local.send, &recv = call_.local.recv;
    const std::uint64_t copied_bytes = copies_out_ ? out_bytes() : 0;
    bool inlined = copied_bytes <= channel::kInlineBytes;
    bool has_table = sized_ && is_exposed() && !copies_out_ && !by_message_;
    std::uint64_t send_table = has_table ? line_up(send.blocks.size() * sizeof(BlockAt)) : 0;
    std::uint64_t recv_table =
        sized_ && ready_for_writers_ ? line_up(recv.blocks.size() * sizeof(BlockAt)) : 0;
    std::uint64_t out = inlined ? 0 : line_up(copied_bytes);
    std::uint64_t send_bytes = send_.where == Where::ring ? line_up(send_total()) : 0;
    std::uint64_t recv_bytes = recv_.where == Where::ring ? line_up(total_of(recv, sized_)) : 0;
    const std::uint64_t layouts = shows_layouts_ ? line_up(blocks::layouts_bytes(send)) : 0;
    std::uint64_t all = send_table + recv_table + layouts + out + send_bytes + recv_bytes;
    open_slot();
    std::byte* stage = all != 0 ? channel_.stage_bytes(all) : nullptr;
    slot_->writer = ready_for_writers_ ? algorithm_.mark() : std::uint16_t{0};
    std::byte* copies = stage + send_table + recv_table + layouts + out;
    lay_out(send_, send, send_.where == Where::ring ? copies : send_.base, send.block_bytes,
            store_.send_blocks);
    lay_out(recv_, recv, recv_.where == Where::ring ? copies + send_bytes : recv_.base, recv.block_bytes,
            store_.recv_blocks);
    fill_side(send_, send, send.block_bytes);
    // Blocks that nobody sends must stay as they are.
    fill_side(recv_, recv, recv.block_bytes);
    if (copies_out_)
        publish_copies(inlined ? slot_->inlined : stage);
    else
        publish_places(stage, stage + send_table, stage + send_table + recv_table);
}

void NeighborFlight::publish_copies(std::byte* scratch) {
    const Buffer& send = call_.local.send;
    if (sized_)
        blocks::copy_out(scratch, send_.base, send_.blocks, unread());
    else if (!personal_)
        blocks::copy_block(scratch, send_.base, send.block_bytes);
    else
        for (const comm::Neighbors::Run& run : near_.read_by_mates) copy_run(scratch, run);
    blocks::publish_scratch(channel_, *slot_, scratch);
}

// Blocks that nobody reads here are left out: every line written is one that readers' CPUs may have to give
// up.
void NeighborFlight::copy_run(std::byte* scratch, comm::Neighbors::Run run) {
    COCO_CHECK_DEAR(run.first >= 0 && run.count > 0 && run.first + run.count <= graph_.send_blocks(),
                    "a run is of blocks that are sent");
    const std::uint64_t bytes = call_.local.send.block_bytes;
    std::byte* to = scratch + base::index(run.first) * bytes;
    const std::byte* from = base::displaced(send_.base, run.first * send_.stride_bytes);
    if (send_.stride_bytes == static_cast<std::int64_t>(bytes))
        return blocks::copy_block(to, from, base::index(run.count) * bytes);
    for (std::int32_t i = 0; i < run.count; ++i, to += bytes, from += send_.stride_bytes)
        blocks::copy_block(to, from, bytes);
}

void NeighborFlight::publish_places(std::byte* send_table, std::byte* recv_table, std::byte* layouts) {
    if (sized_ && is_exposed() && !by_message_)
        std::ranges::copy(send_.blocks, reinterpret_cast<BlockAt*>(send_table));
    if (sized_ && ready_for_writers_) std::ranges::copy(recv_.blocks, reinterpret_cast<BlockAt*>(recv_table));
    if (send_.where == Where::pipe)
        blocks::publish_piped(channel_, *slot_, send_, call_.local.send,
                              {nullptr, shows_layouts_ ? layouts : nullptr, send_table});
    else
        blocks::publish_sides(channel_, *slot_, send_, recv_, send_table, recv_table);
    slot_->direct.send_bytes = call_.local.send.block_bytes;
    slot_->direct.recv_bytes = call_.local.recv.block_bytes;
    if (by_message_) slot_->publish = Publish::messages;
}

void NeighborFlight::publish_all() {
    if (published_) return;
    publish();
    if (!by_message_) return;
    for (const std::int32_t mate : comm_.mates) send_to(mate);
}

void NeighborFlight::send_to(std::int32_t mate) {
    for (std::int32_t i = 0; i < graph_.send_blocks(); ++i) {
        if (graph_.destinations[i] != mate) continue;
        blocks::Block block = own(Area::send, personal_ ? i : 0);
        lane_.post.wire->start_send(mate, block.at, block.bytes, mpi::Wire::kSecondTag, lane_.post.requests);
    }
}

}  // namespace coco::exec
