// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/known.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/index.h"
#include "base/of_thread.h"
#include "dispatch/alias.h"
#include "exec/limits.h"
#include "mpi/progress.h"
#include "os/devices.h"

namespace coco::dispatch {

constinit thread_local KnownCalls* t_known_calls = nullptr;

KnownCalls::~KnownCalls() { t_known_calls = nullptr; }

namespace {

using algorithms::Collective;

KnownCalls& known_calls() {
    if (t_known_calls == nullptr) t_known_calls = &base::of_thread<KnownCalls, KnownCalls>();
    return *t_known_calls;
}

std::byte* first_byte(const BufferArgs& side, std::int64_t offset_bytes) {
    return base::displaced(static_cast<std::byte*>(const_cast<void*>(side.buffer)), offset_bytes);
}

// The bytes of so many elements; none if there are fewer than none, or more than addresses reach.
std::optional<std::uint64_t> bytes_of(std::int64_t count, std::uint64_t element_bytes) {
    std::uint64_t bytes = 0;
    if (count < 0 || __builtin_mul_overflow(static_cast<std::uint64_t>(count), element_bytes, &bytes))
        return std::nullopt;
    return bytes;
}

}  // namespace

bool take_counts(KnownCall& known, std::int64_t send_count, std::int64_t recv_count) {
    if (!known.chosen || !known.chosen->takes_counts) return false;
    Chosen& chosen = *known.chosen;
    const auto sent_bytes = bytes_of(send_count, chosen.send_size_bytes),
               bytes = bytes_of(recv_count, chosen.recv_size_bytes);
    if (!sent_bytes || !bytes) return false;
    exec::Call& call = chosen.call;
    if (known.collective == Collective::allgatherv) {
        call.local.send.total_bytes = *sent_bytes;
    } else {
        const bool is_bcast = known.collective == Collective::bcast;
        if (!chosen.choice.blocks.contains(*bytes) || (!is_bcast && *sent_bytes != *bytes)) return false;
        call.common.block_bytes = is_bcast ? 0 : *bytes;
        call.local.bytes = *bytes;
        for (blocks::Buffer* side : {&call.local.send, &call.local.recv}) {
            side->stride_bytes = static_cast<std::int64_t>(*bytes);
            side->block_bytes = *bytes;
        }
    }
    known.recv_count = recv_count;
    known.send_count = send_count;
    known.alias_bytes = alias_bytes(known.collective, recv_count, chosen.comm->rank, chosen.recv_size_bytes);
    return true;
}

namespace {

// Whether both are of the same calls, so that the newer, which holds longer, takes the place of the other.
bool is_same(const KnownCall& newer, const KnownCall& last) {
    if (last.comm != newer.comm || last.recv_type != newer.recv_type || last.send_type != newer.send_type ||
        last.collective != newer.collective || last.chosen.has_value() != newer.chosen.has_value())
        return false;
    if (last.recv_count == newer.recv_count && last.send_count == newer.send_count)
        return !newer.chosen || newer.chosen->choice.cell == last.chosen->choice.cell;
    return newer.chosen && newer.chosen->choice.cell == last.chosen->choice.cell &&
           newer.chosen->takes_counts && last.chosen->takes_counts &&
           newer.chosen->choice.blocks == last.chosen->choice.blocks;
}

// Returns: whether the counts are such that MPI takes them.
bool read_side(const BufferArgs& side, std::uint64_t size_bytes, std::vector<blocks::BlockAt>& blocks,
               std::int32_t ranks, blocks::Buffer& buffer) {
    if (!side.counts || !side.displacements) return false;
    blocks.resize(base::index(ranks));
    std::int64_t least = read_blocks(side, size_bytes, blocks, buffer.total_bytes);
    buffer.blocks = blocks;
    return least >= 0;
}

bool read_sizes(const Args& args, Chosen& chosen) {
    exec::LocalFacts& local = chosen.call.local;
    Workspace& space = workspace();
    const comm::Neighbors* near = is_neighbor(args.collective) ? chosen.comm->neighbors.get() : nullptr;
    if (!read_side(args.recv, chosen.recv_size_bytes, space.recv_blocks, local.recv.block_count, local.recv))
        return false;
    if (near != nullptr) leave_out(near->from_nobody, space.recv_blocks, local.recv.total_bytes);
    if (base::is_personal(args.collective)) {
        if (!read_side(args.send, chosen.send_size_bytes, space.send_blocks, local.send.block_count,
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
    const std::int64_t own = space.recv_blocks[chosen.comm->rank].displacement_bytes;
    return chosen.choice.blocks.contains(largest) &&
           !(mpi::lib().manners.refuses_aliases && local.send.base == base::displaced(local.recv.base, own));
}

// Puts what is this call's own into the known one. Returns: whether all of it can be read in short.
bool fill_in(const Args& args, KnownCall& known) {
    if (known.passes_on) return true;
    Chosen& chosen = *known.chosen;
    chosen.call.common.root = args.root;
    chosen.call.local.recv.base = first_byte(args.recv, chosen.recv_offset_bytes);
    chosen.call.local.send.base = args.collective == Collective::bcast
                                      ? chosen.call.local.recv.base
                                      : first_byte(args.send, chosen.send_offset_bytes);
    return !chosen.call.common.sized || read_sizes(args, chosen);
}

// Whether the call has to be read whole, so that no processor touches its buffers.
bool names_device(const KnownCall& known) {
    if (known.passes_on || !os::may_have_devices()) [[likely]]
        return false;
    const exec::LocalFacts& local = known.chosen->call.local;
    return is_on_device(local.recv) || is_on_device(local.send);
}

KnownCall* find(const Args& args) {
    if (t_known_calls == nullptr) return nullptr;
    KnownCall* known = t_known_calls->find(
        key_of(args), [&](KnownCall& it) { return is_like(args, it) && fill_in(args, it); });
    return known != nullptr && !names_device(*known) ? known : nullptr;
}

bool is_simple(const TypeFacts& type) {
    return type.run && type.extent_bytes == static_cast<std::int64_t>(type.size_bytes);
}

// Whether the handle may name another type in the next call.
bool may_pass(const TypeFacts& type) { return type.valid && !type.lasts; }

// Small bcasts of types that may pass are like one another where their bytes are of one size class, and all
// are packed or all dense: types that are made for one call each have nothing else in common. Larger ones may
// be copied by their type's layout, which is in the call that would be remembered.
bool is_known_by_bytes(const Args& args, const TypeFacts& type) {
    return args.collective == Collective::bcast && is_plain_pointer(args, 0) && may_pass(type) &&
           args.recv.count > 0 &&
           type.size_bytes <= exec::kTapedBytesMax / static_cast<std::uint64_t>(args.recv.count) &&
           (!type.run || type.is_dense(static_cast<std::uint64_t>(args.recv.count)));
}
// The call as one of bytes. The send type, which bcasts do not use, tells it from others, and dense ones from
// packed ones.
Args as_bytes(const Args& args, const TypeFacts& type) {
    Args bytes = args;
    if (type.run) bytes.recv.buffer = first_byte(args.recv, type.offset_bytes);
    bytes.recv.type = {};
    bytes.recv.count = args.recv.count * static_cast<std::int64_t>(type.size_bytes);
    bytes.send.type = type.run ? mpi::lib().byte : mpi::lib().int64;
    return bytes;
}

// Whether all that depends on a call's counts is their product with a type's size. (The two sides of
// neighbours may differ.)
bool can_take_counts(const Args& args, const CommonArguments& common) {
    return common.has_block && !is_neighbor(args.collective) && is_simple(common.recv_type) &&
           (args.collective == Collective::bcast || is_simple(common.send_type));
}

// Whether the call's like can be read in short.
bool can_be_known(const Args& args, const CommonArguments& common, const exec::Call* call,
                  std::int64_t alias) {
    if (args.recv.types != nullptr || !is_plain_pointer(args, alias) || common.sends_copy) return false;
    if (call != nullptr && (call->local.send.packer != nullptr || call->local.recv.packer != nullptr))
        return false;
    if (may_pass(common.recv_type) || may_pass(common.send_type)) return false;
    if (common.facts.sized && !(is_simple(common.recv_type) && is_simple(common.send_type))) return false;
    // The size by which was chosen is in the counts, which are not read again.
    if (common.facts.sized && common.has_block && call == nullptr) return false;
    // Otherwise two different addresses could name the same data.
    return args.collective == Collective::bcast ||
           common.send_type.offset_bytes == common.recv_type.offset_bytes;
}

void put(const Args& args, const KnownCall& known) {
    known_calls().put(key_of(args), known, [&](const KnownCall& last) { return is_same(known, last); });
}

KnownCall known_from(const Args& args, std::uint64_t generation) {
    return {.generation = generation,
            .comm = args.comm,
            .send_type = args.send.type,
            .recv_type = args.recv.type,
            .send_count = args.send.count,
            .recv_count = args.recv.count,
            .collective = args.collective};
}

}  // namespace

const KnownCall* find_ready(const Args& args) { return find(args); }

const KnownCall* find_by_bytes(const Args& args) {
    if (t_known_calls == nullptr || !t_known_calls->knows_by_bytes || args.collective != Collective::bcast ||
        !is_plain_pointer(args, 0))
        return nullptr;
    if (mpi::own_comm() == mpi::lib().comm_null) return nullptr;  // MPI has ended
    const TypeFacts type = facts_to_pack(args.recv.type, args.recv.count, exec::kTapedBytesMax);
    if (!is_known_by_bytes(args, type)) return nullptr;
    KnownCall* const known = find(as_bytes(args, type));
    if (known != nullptr && !known->passes_on) {
        exec::LocalFacts& local = known->chosen->call.local;
        local.send.packer = local.recv.packer = type.run ? nullptr : read_packed(args, workspace());
    }
    return known;
}

void remember_chosen(const Args& args, const CommonArguments& common, comm::Comm& comm,
                     const choose::Choice& choice, const exec::Call* call, std::uint64_t generation) {
    const bool by_bytes = is_known_by_bytes(args, common.recv_type);
    const Args as_known = by_bytes ? as_bytes(args, common.recv_type) : args;
    const std::uint64_t element_bytes = by_bytes ? 1 : common.recv_type.size_bytes;
    const std::int64_t alias =
        alias_bytes(as_known.collective, as_known.recv.count, comm.rank, element_bytes);
    if (!by_bytes && !can_be_known(args, common, call, alias)) return;
    COCO_CHECK(!by_bytes || call == nullptr || !call->local.recv.has_layouts(), "a small buffer is packed");
    KnownCall known = known_from(as_known, generation);
    known.passes_on = call == nullptr;
    known.ranks = comm.ranks;
    known.alias_bytes = alias;
    known.counter = &choice.cell->calls;
    known.end = choice.last_of_cell;
    known.chosen = {.comm = &comm,
                    .choice = choice,
                    .call = call != nullptr ? *call : exec::Call{.common = common.facts, .local = {}},
                    .send_offset_bytes = by_bytes ? 0 : common.send_type.offset_bytes,
                    .recv_offset_bytes = by_bytes ? 0 : common.recv_type.offset_bytes,
                    .send_size_bytes = by_bytes ? 1 : common.send_type.size_bytes,
                    .recv_size_bytes = element_bytes,
                    .takes_counts = by_bytes || can_take_counts(args, common)};
    if (by_bytes) known_calls().knows_by_bytes = true;
    put(as_known, known);
}

void remember_unused(const Args& args, std::uint64_t generation, const comm::UnusedCalls& count) {
    KnownCall known = known_from(args, generation);
    known.passes_on = true;
    known.counter = count.weight;
    known.each = count.each;
    known.end = count.end;
    put(args, known);
}

namespace {

// The call that stands for all of its collective on its communicator.
Args any_call(const Args& args) { return {.collective = args.collective, .comm = args.comm}; }

}  // namespace

void remember_closed(const Args& args) {
    for (const Args& one : {args, any_call(args)}) {
        KnownCall known = known_from(one, generation_now());
        known.passes_on = true;
        put(one, known);
    }
}

bool is_known_closed(const Args& args) { return find_passing(any_call(args)) != nullptr; }

}  // namespace coco::dispatch
