// SPDX-License-Identifier: BSD-3-Clause
//
// This rank's buffers: where each block lies, of how many bytes, and what packs it.
#include <algorithm>

#include "base/index.h"
#include "base/of_thread.h"
#include "blocks/side.h"
#include "dispatch/read.h"
#include "dispatch/side_args.h"
#include "heap/overlays.h"
#include "os/devices.h"

namespace coco::dispatch {

using algorithms::Collective;

void leave_out(std::span<const std::int32_t> nobody, std::span<blocks::BlockAt> blocks,
               std::uint64_t& total_bytes) {
    for (std::int32_t i : nobody) {
        total_bytes -= blocks[base::index(i)].bytes;
        blocks[base::index(i)] = {};
    }
}

namespace {

template <class Count, class Displacement>
std::int64_t read_blocks(const Count* counts, const Displacement* displacements, std::uint64_t size_bytes,
                         std::span<blocks::BlockAt> blocks, std::uint64_t& total_bytes) {
    std::int64_t signs = 0;
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        signs |= counts[i];
        std::uint64_t bytes = static_cast<std::uint64_t>(counts[i]) * size_bytes;
        blocks[i] = {displacements[i] * static_cast<std::int64_t>(size_bytes), bytes};
        total += bytes;
    }
    total_bytes = total;
    return signs;
}

class BufferReader {
  public:
    BufferReader(const SideArgs& side, Workspace& space, bool sends, mpi::Comm comm)
        : side_(side),
          base_(static_cast<std::byte*>(const_cast<void*>(side.args.buffer))),
          blocks_(sends ? space.send_blocks : space.recv_blocks),
          packer_(sends ? space.send_packer : space.recv_packer),
          block_layouts_(sends ? space.send_block_layouts : space.recv_block_layouts),
          layouts_(sends ? space.send_layouts : space.recv_layouts),
          comm_(comm) {}

    blocks::Buffer read() {
        blocks::Buffer buffer{.base = base_, .block_count = side_.blocks};
        if (side_.sized) {
            read_sized(buffer);
            if (side_.nobody != nullptr) leave_out(*side_.nobody, blocks_, buffer.total_bytes);
        } else {
            read_plain(buffer);
        }
        buffer.on_device = is_on_device(buffer);
        if (buffer.on_device) buffer.packer = &packer_;
        if (buffer.packer == nullptr) return buffer;
        fill_packer();
        packer_.by_next_tool = buffer.on_device;
        if (buffer.on_device) return buffer;
        const std::uint64_t bytes =
            side_.sized ? buffer.total_bytes : buffer.block_bytes * static_cast<std::uint64_t>(side_.blocks);
        // Smaller buffers are packed in any case.
        if (bytes > blocks::piped_above_bytes(1)) read_layouts(buffer);
        return buffer;
    }

    // allgatherv's one send block is sized too.
    static void make_sized(blocks::Buffer& buffer, std::uint64_t bytes,
                           std::vector<blocks::BlockAt>& blocks) {
        blocks.assign(1, {0, bytes});
        buffer.blocks = blocks;
        buffer.total_bytes = bytes;
    }

  private:
    void read_plain(blocks::Buffer& buffer) {
        const TypeFacts type = side_.one_type;
        buffer.base = base::displaced(base_, type.offset_bytes);
        buffer.stride_bytes = side_.args.count * type.extent_bytes;
        buffer.block_bytes = static_cast<std::uint64_t>(side_.args.count) * type.size_bytes;
        judge(type, side_.args.count, buffer);
    }

    void read_sized(blocks::Buffer& buffer) {
        blocks_.resize(base::index(side_.blocks));
        if (side_.args.types == nullptr && side_.one_type.run &&
            side_.one_type.extent_bytes == static_cast<std::int64_t>(side_.one_type.size_bytes))
            return read_dense(buffer);
        bool run = true;
        for (std::int32_t i = 0; i < side_.blocks; ++i) {
            const TypeFacts type = side_.facts(i);
            std::uint64_t bytes = static_cast<std::uint64_t>(side_.count_of(i)) * type.size_bytes;
            blocks_[i] = {displacement_of(side_, i, type) + type.offset_bytes, bytes};
            buffer.total_bytes += bytes;
            if (bytes != 0) judge(type, side_.count_of(i), buffer);
            run = run && (bytes == 0 || type.run);
        }
        buffer.gapped = buffer.packer != nullptr && run;
        buffer.blocks = blocks_;
    }

    // Most calls: one type without gaps.
    void read_dense(blocks::Buffer& buffer) {
        buffer.base = base::displaced(buffer.base, side_.one_type.offset_bytes);
        read_blocks(side_.args, side_.one_type.size_bytes, blocks_, buffer.total_bytes);
        buffer.blocks = blocks_;
    }

    void judge(const TypeFacts& type, std::int64_t count, blocks::Buffer& buffer) {
        if (type.is_dense(static_cast<std::uint64_t>(count))) return;
        buffer.packer = &packer_;
        buffer.gapped = type.run;
    }

    void fill_packer() {
        packer_.comm = comm_;
        packer_.blocks.clear();
        for (std::int32_t i = 0; i < side_.blocks; ++i)
            packer_.blocks.push_back({base::displaced(base_, displacement_of(side_, i, side_.facts(i))),
                                      side_.count_of(i), side_.type_of(i)});
    }

    // Finds the layout of each block, if all have one.
    void read_layouts(blocks::Buffer& buffer) {
        block_layouts_.clear();
        layouts_.clear();
        for (std::int32_t i = 0; i < (side_.sized ? side_.blocks : 1); ++i)
            if (!add_layout(i)) return;
        buffer.layouts = block_layouts_;
    }
    bool add_layout(std::int32_t block) {
        const TypeFacts type = side_.facts(block);
        const std::int64_t count = side_.count_of(block);
        block_layouts_.emplace_back();
        if (count == 0 || type.size_bytes == 0 || type.is_dense(static_cast<std::uint64_t>(count)))
            return true;
        std::shared_ptr<const TypeLayout> layout = layout_of(side_.type_of(block));
        if (layout == nullptr) return false;
        block_layouts_.back() = {layout->words.data(), count, type.extent_bytes, layout->span_bytes};
        if (layouts_.empty() || layouts_.back() != layout) layouts_.push_back(std::move(layout));
        return true;
    }

    const SideArgs& side_;
    std::byte* base_;
    std::vector<blocks::BlockAt>& blocks_;
    TypePacker& packer_;
    std::vector<blocks::BlockLayout>& block_layouts_;
    std::vector<std::shared_ptr<const TypeLayout>>& layouts_;
    mpi::Comm comm_;
};

// The send side of a call in place: what lies in the receive buffer, all of it, or for allgather this rank's
// own block.
blocks::Buffer in_place_send(const blocks::Buffer& recv, const comm::Comm& comm, bool personal,
                             Workspace& space) {
    blocks::Buffer send = recv;
    if (personal) return send;
    send.block_count = 1;
    if (recv.packer != nullptr) {
        space.send_packer.comm = space.recv_packer.comm;
        space.send_packer.by_next_tool = space.recv_packer.by_next_tool;
        space.send_packer.blocks.assign(1, space.recv_packer.blocks[comm.rank]);
        send.packer = &space.send_packer;
        if (recv.layouts.size() > 1) send.layouts = recv.layouts.subspan(base::index(comm.rank), 1);
    }
    if (recv.blocks.empty()) {
        send.base = base::displaced(send.base, comm.rank * recv.stride_bytes);
    } else {
        send.base = base::displaced(send.base, recv.blocks[comm.rank].displacement_bytes);
        BufferReader::make_sized(send, recv.blocks[comm.rank].bytes, space.send_blocks);
    }
    return send;
}

blocks::Buffer dense_buffer(const BufferArgs& args, const TypeFacts& type, std::int32_t blocks) {
    return {
        .base = base::displaced(static_cast<std::byte*>(const_cast<void*>(args.buffer)), type.offset_bytes),
        .stride_bytes = args.count * type.extent_bytes,
        .block_bytes = static_cast<std::uint64_t>(args.count) * type.size_bytes,
        .block_count = blocks};
}

}  // namespace

bool is_on_device(const blocks::Buffer& buffer) {
    if (!os::may_have_devices() || buffer.block_count == 0) return false;
    const std::byte* first = buffer.base;
    if (buffer.blocks.empty() && buffer.block_bytes == 0) return false;
    if (!buffer.blocks.empty()) {
        const auto filled = std::ranges::find_if(buffer.blocks, &blocks::BlockAt::bytes);
        if (filled == buffer.blocks.end()) return false;
        first = base::displaced(first, filled->displacement_bytes);
    }
    return !heap::touches_segment(first, 1) && os::is_on_device(first);
}

Workspace& workspace() { return base::of_thread<Workspace, Workspace>(); }

std::int64_t read_blocks(const BufferArgs& side, std::uint64_t size_bytes, std::span<blocks::BlockAt> blocks,
                         std::uint64_t& total_bytes) {
    const Numbers &counts = side.counts, &displacements = side.displacements;
    if (counts.narrow() != nullptr && displacements.narrow() != nullptr)
        return read_blocks(counts.narrow(), displacements.narrow(), size_bytes, blocks, total_bytes);
    return read_blocks(counts.wide(), displacements.wide(), size_bytes, blocks, total_bytes);
}

const TypePacker* read_packed(const Args& args, Workspace& space) {
    space.recv_packer.comm = args.comm;
    space.recv_packer.by_next_tool = false;
    space.recv_packer.blocks.assign(
        1, {static_cast<std::byte*>(const_cast<void*>(args.recv.buffer)), args.recv.count, args.recv.type});
    return &space.recv_packer;
}

void read_local(const Args& args, const comm::Comm& comm, const CommonArguments& common, Workspace& space,
                exec::LocalFacts& local) {
    bool bcast = args.collective == Collective::bcast;
    bool personal = base::is_personal(args.collective);
    if (common.recv_dense && (common.send_dense || bcast) && !os::may_have_devices()) {
        local.recv =
            dense_buffer(args.recv, common.recv_type, bcast ? 1 : recv_blocks_of(args.collective, comm));
        local.bytes = common.block_bytes;
        local.send = bcast ? local.recv
                           : dense_buffer(args.send, common.send_type,
                                          personal ? send_blocks_of(args.collective, comm)
                                                   : std::min(send_blocks_of(args.collective, comm), 1));
        return;
    }
    SideArgs recv = recv_side(args, comm, &common.recv_type);
    blocks::Buffer buffer = BufferReader(recv, space, false, args.comm).read();
    if (args.collective == Collective::bcast) {
        local.bytes = common.block_bytes;
        local.send = local.recv = buffer;
        return;
    }
    local.recv = buffer;
    if (common.facts.in_place) {
        local.send = in_place_send(buffer, comm, personal, space);
        return;
    }
    SideArgs send = send_side(args, comm, &common.send_type);
    local.send = BufferReader(send, space, true, args.comm).read();
    if (common.facts.sized && !personal)
        BufferReader::make_sized(local.send, bytes_of(send, 0), space.send_blocks);
}

}  // namespace coco::dispatch
