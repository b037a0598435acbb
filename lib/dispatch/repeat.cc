// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/repeat.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>

#include "base/bits.h"
#include "base/check.h"
#include "base/of_thread.h"

#include "dispatch/alias.h"
#include "dispatch/left.h"
#include "exec/limits.h"
#include "mpi/progress.h"
#include "os/devices.h"

namespace coco::dispatch {
namespace {

using algorithms::Collective;

struct RememberedCall {
    // A call that repeats this one has the same of these.
    std::uint64_t generation = 0;
    mpi::Comm comm = {};
    mpi::Datatype send_type = {}, recv_type = {};
    std::int64_t send_count = 0, recv_count = 0;
    // Where an element begins, from the buffer's address, and its size.
    std::int64_t send_offset_bytes, recv_offset_bytes;
    std::uint64_t send_size_bytes, recv_size_bytes;
    // The counts may differ, as long as the choice is for such blocks.
    bool takes_counts;
    // How far behind the receive buffer a send buffer is refused (alias.h).
    std::int64_t alias_bytes;
    Repeat repeat;

    // Whether such calls are left to the MPI library until the cell has had so many, whatever else calls tell.
    bool is_left_until_its_last_call() const {
        return repeat.is_left && repeat.choice.last_call == UINT64_MAX &&
               !repeat.choice.cell->goes_by_told_size;
    }
    LeftByChoice as_left() const {
        return {.generation = generation,
                .comm = comm,
                .send_type = send_type,
                .recv_type = recv_type,
                .send_count = send_count,
                .recv_count = recv_count,
                .alias_bytes = alias_bytes,
                .ranks = repeat.comm->ranks,
                .cell = repeat.choice.cell,
                .last_of_cell = repeat.choice.last_of_cell,
                .is_measured = repeat.choice.is_measured};
    }
};

// The things of one kind that were put in of late, 256 at most. Each is sought by a key, which others may have, too, and has a generation.
template <class Thing>
class OfLate {
  public:
    // Returns: a thing with this key for which `is` holds; null if there is none.
    template <class Is>
    Thing* find(std::uint64_t key, Is is) {
        Set* set = sets_[set_of(key)].get();
        if (set == nullptr) return nullptr;
        for (Thing& thing : set->things)
            if (is(thing)) return &thing;
        return nullptr;
    }
    // Puts the thing in the place of an older one for which `is_same` holds; else of one of another generation, which is of no use any
    // more; else of one drawn by chance: where a few more are used in turns than there are places, the oldest is the next to be used.
    template <class IsSame>
    void put(std::uint64_t key, const Thing& thing, IsSame is_same) {
        std::unique_ptr<Set>& set = sets_[set_of(key)];
        if (set == nullptr) set = std::make_unique<Set>();
        Thing* place = find(key, is_same);
        if (place == nullptr)
            place = find(key, [&](const Thing& other) { return other.generation != thing.generation; });
        (place != nullptr ? *place : set->things[some_way()]) = thing;
    }

  private:
    static constexpr std::size_t kSetsLog = 6, kWays = 4;
    struct Set {
        Thing things[kWays];
    };
    static std::size_t set_of(std::uint64_t key) { return key * 0x9E3779B97F4A7C15u >> (64 - kSetsLog); }
    std::size_t some_way() {
        random_ = random_ * 1664525 + 1013904223;
        return (random_ >> 16) % kWays;
    }
    std::unique_ptr<Set> sets_[1u << kSetsLog];  // null: nothing was put there
    std::uint32_t random_ = 0;
};

// Not in the thread's static storage, which comes off the stacks of all threads, those that know no MPI too.
struct Memory {
    OfLate<RememberedCall> remembered[algorithms::kCollectives];
    OfLate<LeftForGood> left[algorithms::kCollectives];
    OfLate<RememberedCall> packed, dense;  // see is_known_by_bytes()
    bool knows_by_bytes = false;

    OfLate<RememberedCall>& by_bytes(const TypeFacts& type) { return type.run ? dense : packed; }
};
Memory& memory() { return base::of_thread<Memory, Memory>(); }

// The counts of one size class have at most two keys. (allgatherv has a count of its own in sending alone.)
std::uint64_t key_of(const Args& args) {
    const auto counts = static_cast<std::uint64_t>(args.recv.count | args.send.count);
    return args.comm.bits + args.recv.type.bits * 3 + static_cast<std::uint64_t>(std::bit_width(counts));
}
std::uint64_t key_of_left(const Args& args) { return args.comm.bits; }

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

// Gives the call that is remembered other counts than it has. Returns: whether that is all that it needs, and the choice may still hold.
bool take_counts(const Args& args, RememberedCall& last) {
    if (!last.takes_counts) return false;
    const auto sent_bytes = bytes_of(args.send.count, last.send_size_bytes),
               bytes = bytes_of(args.recv.count, last.recv_size_bytes);
    if (!sent_bytes || !bytes) return false;
    exec::Call& call = last.repeat.call;
    if (args.collective == Collective::allgatherv) {
        call.local.send.total_bytes = *sent_bytes;
    } else {
        const bool is_bcast = args.collective == Collective::bcast;
        if (!last.repeat.choice.blocks.contains(*bytes) || (!is_bcast && *sent_bytes != *bytes)) return false;
        call.common.block_bytes = is_bcast ? 0 : *bytes;
        call.local.bytes = *bytes;
        for (blocks::Buffer* side : {&call.local.send, &call.local.recv}) {
            side->stride_bytes = static_cast<std::int64_t>(*bytes);
            side->block_bytes = *bytes;
        }
    }
    last.recv_count = args.recv.count;
    last.send_count = args.send.count;
    last.alias_bytes = alias_bytes(args, last.repeat.comm->rank, last.recv_size_bytes);
    return true;
}

bool is_like(const Args& args, RememberedCall& last) {
    return last.comm == args.comm && last.recv_type == args.recv.type && last.send_type == args.send.type &&
           last.generation == generation_now() &&
           ((last.recv_count == args.recv.count && last.send_count == args.send.count) ||
            take_counts(args, last)) &&
           is_plain_pointer(args, last.alias_bytes) && args.root >= 0 &&
           args.root < last.repeat.comm->ranks &&
           last.repeat.choice.cell->calls < last.repeat.choice.last_of_cell &&
           (last.repeat.choice.last_call == UINT64_MAX ||
            last.repeat.comm->choices.calls(args.collective) < last.repeat.choice.last_call) &&
           last.repeat.comm->choices.leads_to(*last.repeat.choice.cell);
}

// Whether both are of the same calls, so that the newer, whose choice holds longer, takes the place of the other.
bool is_same(const RememberedCall& newer, const RememberedCall& last) {
    const choose::Choice &chosen = newer.repeat.choice, &was_chosen = last.repeat.choice;
    return last.comm == newer.comm && last.recv_type == newer.recv_type &&
           last.send_type == newer.send_type && chosen.cell == was_chosen.cell &&
           ((last.recv_count == newer.recv_count && last.send_count == newer.send_count) ||
            (last.takes_counts && newer.takes_counts && chosen.blocks == was_chosen.blocks));
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

bool read_sizes(const Args& args, RememberedCall& last) {
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
    return last.repeat.choice.blocks.contains(largest) &&
           !(mpi::lib().manners.refuses_aliases && local.send.base == base::displaced(local.recv.base, own));
}

// Puts what is this call's own into the call that is remembered. Returns: whether all of it can be read in short.
bool fill_in(const Args& args, RememberedCall& last) {
    if (last.repeat.is_left) return true;
    exec::Call& call = last.repeat.call;
    call.common.root = args.root;
    call.local.recv.base = first_byte(args.recv, last.recv_offset_bytes);
    call.local.send.base = args.collective == Collective::bcast
                               ? call.local.recv.base
                               : first_byte(args.send, last.send_offset_bytes);
    return !call.common.sized || read_sizes(args, last);
}

// Whether the call has to be read whole, so that no processor touches its buffers.
bool names_device(const exec::LocalFacts& local) {
    return os::may_have_devices() && (is_on_device(local.recv) || is_on_device(local.send));
}

bool is_simple(const TypeFacts& type) {
    return type.run && type.extent_bytes == static_cast<std::int64_t>(type.size_bytes);
}

// Whether the handle may name another type in the next call.
bool may_pass(const TypeFacts& type) { return type.valid && !type.lasts; }

// Small bcasts of types that may pass are like one another where their bytes are of one size class, and all are packed or all dense:
// types that are made for one call each have nothing else in common. Larger ones may be copied by their type's layout, which is
// in the call that would be remembered.
bool is_known_by_bytes(const Args& args, const TypeFacts& type) {
    return args.collective == Collective::bcast && is_plain_pointer(args, 0) && may_pass(type) &&
           args.recv.count > 0 &&
           type.size_bytes <= exec::kTapedBytesMax / static_cast<std::uint64_t>(args.recv.count) &&
           (!type.run || type.is_dense(static_cast<std::uint64_t>(args.recv.count)));
}
// The call as one of bytes.
Args as_bytes(const Args& args, const TypeFacts& type) {
    Args bytes = args;
    if (type.run) bytes.recv.buffer = first_byte(args.recv, type.offset_bytes);
    bytes.recv.type = {};
    bytes.recv.count = args.recv.count * static_cast<std::int64_t>(type.size_bytes);
    return bytes;
}

// Whether all that depends on a call's counts is their product with a type's size. (The two sides of neighbours may differ.)
bool can_take_counts(const Args& args, const CommonArguments& common) {
    return common.has_block && !is_neighbor(args.collective) && is_simple(common.recv_type) &&
           (args.collective == Collective::bcast || is_simple(common.send_type));
}

}  // namespace

const Repeat* repeat_of(const Args& args) {
    RememberedCall* last = memory().remembered[static_cast<int>(args.collective)].find(
        key_of(args), [&](RememberedCall& it) { return is_like(args, it) && fill_in(args, it); });
    if (last == nullptr) return nullptr;
    if (!last->repeat.is_left && names_device(last->repeat.call.local)) [[unlikely]]
        return nullptr;
    if (last->is_left_until_its_last_call()) [[unlikely]]
        remember_left_by_choice(args, last->as_left());
    return &last->repeat;
}

const Repeat* repeat_by_bytes(const Args& args) {
    if (!memory().knows_by_bytes || args.collective != Collective::bcast || !is_plain_pointer(args, 0))
        return nullptr;
    if (mpi::own_comm() == mpi::lib().comm_null) return nullptr;  // MPI has ended
    const TypeFacts type = facts_to_pack(args.recv.type, args.recv.count, exec::kTapedBytesMax);
    if (!is_known_by_bytes(args, type)) return nullptr;
    const Args bytes = as_bytes(args, type);
    RememberedCall* last = memory().by_bytes(type).find(
        key_of(bytes), [&](RememberedCall& it) { return is_like(bytes, it) && fill_in(bytes, it); });
    if (last == nullptr) return nullptr;
    if (!last->repeat.is_left && names_device(last->repeat.call.local)) return nullptr;
    if (!last->repeat.is_left && !type.run) {
        exec::LocalFacts& local = last->repeat.call.local;
        local.send.packer = local.recv.packer = read_packed(args, workspace());
    }
    return &last->repeat;
}

namespace {

void remember_by_bytes(const Args& args, const Repeat& repeat, const TypeFacts& type,
                       std::uint64_t generation) {
    COCO_CHECK(!repeat.call.local.recv.has_layouts(), "a small buffer is packed");
    const Args bytes = as_bytes(args, type);
    RememberedCall now = {.generation = generation,
                          .comm = args.comm,
                          .recv_count = bytes.recv.count,
                          .send_offset_bytes = 0,
                          .recv_offset_bytes = 0,
                          .send_size_bytes = 1,
                          .recv_size_bytes = 1,
                          .takes_counts = true,
                          .alias_bytes = alias_bytes(bytes, repeat.comm->rank, 1),
                          .repeat = repeat};
    now.repeat.is_usual = !repeat.is_left && !repeat.choice.is_measured;
    memory().knows_by_bytes = true;
    memory().by_bytes(type).put(key_of(bytes), now,
                                [&](const RememberedCall& last) { return is_same(now, last); });
}

}  // namespace

void remember(const Args& args, const CommonArguments& common, const Repeat& repeat,
              std::uint64_t generation) {
    if (is_known_by_bytes(args, common.recv_type))
        return remember_by_bytes(args, repeat, common.recv_type, generation);
    const exec::LocalFacts& local = repeat.call.local;
    bool two_sided = args.collective != Collective::bcast;
    const std::int64_t alias = alias_bytes(args, repeat.comm->rank, common.recv_type.size_bytes);
    if (args.recv.types != nullptr || !is_plain_pointer(args, alias) || common.sends_copy ||
        local.send.packer != nullptr || local.recv.packer != nullptr)
        return;
    if (may_pass(common.recv_type) || may_pass(common.send_type)) return;
    if (common.facts.sized && !(is_simple(common.recv_type) && is_simple(common.send_type))) return;
    // The size by which was chosen is in the counts, which are not read again.
    if (common.facts.sized && common.has_block && repeat.is_left) return;
    // Otherwise two different addresses could name the same data.
    if (two_sided && common.send_type.offset_bytes != common.recv_type.offset_bytes) return;
    RememberedCall now = {.generation = generation,
                          .comm = args.comm,
                          .send_type = args.send.type,
                          .recv_type = args.recv.type,
                          .send_count = args.send.count,
                          .recv_count = args.recv.count,
                          .send_offset_bytes = common.send_type.offset_bytes,
                          .recv_offset_bytes = common.recv_type.offset_bytes,
                          .send_size_bytes = common.send_type.size_bytes,
                          .recv_size_bytes = common.recv_type.size_bytes,
                          .takes_counts = can_take_counts(args, common),
                          .alias_bytes = alias,
                          .repeat = repeat};
    now.repeat.is_usual = !repeat.is_left && !repeat.choice.is_measured;
    memory().remembered[static_cast<int>(args.collective)].put(
        key_of(args), now, [&](const RememberedCall& last) { return is_same(now, last); });
    if (now.is_left_until_its_last_call()) remember_left_by_choice(args, now.as_left());
}

bool is_left_for_good(const Args& args) {
    const LeftForGood* left = memory().left[static_cast<int>(args.collective)].find(
        key_of_left(args), [&](const LeftForGood& one) { return one.is_of(args); });
    if (left != nullptr) remember_left_for_good(args, left->generation);
    return left != nullptr;
}

void remember_left(const Args& args) {
    memory().left[static_cast<int>(args.collective)].put(
        key_of_left(args), {comm::generation(), args.comm},
        [&](const LeftForGood& left) { return left.comm == args.comm; });
}

}  // namespace coco::dispatch
