// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/repeat.h"

#include <algorithm>

#include "base/bits.h"
#include "base/of_thread.h"

#include "dispatch/alias.h"

namespace coco::dispatch {
namespace {

using algorithms::Collective;

struct Remembered {
    // A call that repeats this one has the same of these.
    std::uint64_t generation = 0;
    mpi::Comm comm;
    mpi::Datatype send_type, recv_type;
    std::int64_t send_count, recv_count;
    std::uint64_t block_bytes;  // allgatherv: the largest block, by which was chosen
    // Where an element begins, from the buffer's address, and its size.
    std::int64_t send_offset_bytes, recv_offset_bytes;
    std::uint64_t send_size_bytes, recv_size_bytes;
    // How far behind the receive buffer a send buffer is refused (alias.h).
    std::int64_t alias_bytes;
    Repeat repeat;
};

struct Left {
    std::uint64_t generation = 0;
    mpi::Comm comm;
};

// Not in the thread's static storage, which comes off the stacks of all threads, those that know no MPI too.
struct Memory {
    Remembered remembered[algorithms::kCollectives];
    Left left[algorithms::kCollectives];
};
Memory& memory() { return base::of_thread<Memory, Memory>(); }

// Both only go up: equal sums are equal summands.
std::uint64_t generation_now() { return comm::generation() + type_generation(); }

std::byte* first_byte(const BufferArgs& side, std::int64_t offset_bytes) {
    return base::displaced(static_cast<std::byte*>(const_cast<void*>(side.buffer)), offset_bytes);
}

// Whether no buffer needs a second look, as null ones, sentinels, and those that both sides share do.
bool is_plain_pointer(const Args& args, std::int64_t alias_bytes) {
    return args.recv.buffer != nullptr && args.recv.buffer != mpi::lib().constants.in_place &&
           (args.collective == Collective::bcast ||
            (args.send.buffer != nullptr && args.send.buffer != mpi::lib().constants.in_place &&
             args.send.buffer != first_byte(args.recv, alias_bytes)));
}

bool is_like(const Args& args, const Remembered& last) {
    return last.comm == args.comm && last.recv_type == args.recv.type && last.recv_count == args.recv.count &&
           last.send_type == args.send.type && last.send_count == args.send.count &&
           last.generation == generation_now() && is_plain_pointer(args, last.alias_bytes) &&
           args.root >= 0 && args.root < last.repeat.comm->ranks &&
           last.repeat.choice.cell->calls < last.repeat.choice.last_of_cell &&
           (last.repeat.choice.last_call == UINT64_MAX ||
            last.repeat.comm->choices.calls(args.collective) < last.repeat.choice.last_call) &&
           last.repeat.comm->choices.leads_to(*last.repeat.choice.cell);
}

// Returns: whether the counts are such that MPI takes them.
bool read_side(const BufferArgs& side, std::uint64_t size_bytes, std::vector<blocks::BlockAt>& blocks,
               std::int32_t ranks, blocks::Buffer& buffer) {
    if (!side.counts || !side.displacements) return false;
    blocks.resize(static_cast<std::size_t>(ranks));
    std::int64_t least = read_blocks(side, size_bytes, blocks, buffer.total_bytes);
    buffer.blocks = blocks;
    return least >= 0;
}

bool read_sizes(const Args& args, Remembered& last) {
    exec::LocalFacts& local = last.repeat.call.local;
    Workspace& space = workspace();
    const comm::Neighbors* near = is_neighbor(args.collective) ? last.repeat.comm->neighbors.get() : nullptr;
    if (!read_side(args.recv, last.recv_size_bytes, space.recv_blocks, local.recv.block_count, local.recv))
        return false;
    if (near != nullptr) leave_out(near->from_nobody, space.recv_blocks, local.recv.total_bytes);
    if (base::is_personal(args.collective)) {
        if (!read_side(args.send, last.send_size_bytes, space.send_blocks, local.send.block_count,
                       local.send))
            return false;
        if (near != nullptr) leave_out(near->to_nobody, space.send_blocks, local.send.total_bytes);
        return true;
    }
    std::uint64_t largest = 0;
    for (const blocks::BlockAt& block : space.recv_blocks) largest = std::max(largest, block.bytes);
    space.send_blocks.assign(1, {0, local.send.total_bytes});
    local.send.blocks = space.send_blocks;
    if (near != nullptr) return true;
    const std::int64_t own = space.recv_blocks[last.repeat.comm->rank].displacement_bytes;
    return largest == last.block_bytes &&
           !(mpi::lib().manners.refuses_aliases && local.send.base == base::displaced(local.recv.base, own));
}

}  // namespace

const Repeat* repeat_of(const Args& args) {
    Remembered& last = memory().remembered[static_cast<int>(args.collective)];
    if (!is_like(args, last)) return nullptr;
    if (last.repeat.is_left) return &last.repeat;
    exec::Call& call = last.repeat.call;
    call.common.root = args.root;
    call.local.recv.base = first_byte(args.recv, last.recv_offset_bytes);
    call.local.send.base = args.collective == Collective::bcast
                               ? call.local.recv.base
                               : first_byte(args.send, last.send_offset_bytes);
    if (call.common.sized && !read_sizes(args, last)) return nullptr;
    return &last.repeat;
}

void remember(const Args& args, const CommonArguments& common, const Repeat& repeat) {
    const exec::LocalFacts& local = repeat.call.local;
    auto is_simple = [](const TypeFacts& type) {
        return type.run && type.extent_bytes == static_cast<std::int64_t>(type.size_bytes);
    };
    bool two_sided = args.collective != Collective::bcast;
    const std::int64_t alias = alias_bytes(args, repeat.comm->rank, common.recv_type);
    if (args.recv.types != nullptr || !is_plain_pointer(args, alias) || common.sends_copy ||
        local.send.packer != nullptr || local.recv.packer != nullptr)
        return;
    if (common.facts.sized && !(is_simple(common.recv_type) && is_simple(common.send_type))) return;
    // The size by which was chosen is in the counts, which are not read again.
    if (common.facts.sized && common.has_block && repeat.is_left) return;
    // Otherwise two different addresses could name the same data.
    if (two_sided && common.send_type.offset_bytes != common.recv_type.offset_bytes) return;
    memory().remembered[static_cast<int>(args.collective)] = {
        .generation = generation_now(),
        .comm = args.comm,
        .send_type = args.send.type,
        .recv_type = args.recv.type,
        .send_count = args.send.count,
        .recv_count = args.recv.count,
        .block_bytes = common.block_bytes,
        .send_offset_bytes = common.send_type.offset_bytes,
        .recv_offset_bytes = common.recv_type.offset_bytes,
        .send_size_bytes = common.send_type.size_bytes,
        .recv_size_bytes = common.recv_type.size_bytes,
        .alias_bytes = alias,
        .repeat = repeat};
    memory().remembered[static_cast<int>(args.collective)].repeat.is_usual =
        !repeat.is_left && !repeat.choice.is_measured;
}

void forget(Collective collective) { memory().remembered[static_cast<int>(collective)] = {}; }

bool is_left_for_good(const Args& args) {
    const Left& left = memory().left[static_cast<int>(args.collective)];
    return left.comm == args.comm && left.generation == comm::generation();
}

void remember_left(const Args& args) {
    memory().left[static_cast<int>(args.collective)] = {comm::generation(), args.comm};
}

}  // namespace coco::dispatch
