// SPDX-License-Identifier: BSD-3-Clause
#include "dispatch/read.h"

#include <algorithm>
#include <climits>
#include <cstdlib>

#include "base/log.h"
#include "base/of_thread.h"
#include "dispatch/alias.h"
#include "mpi/library.h"

namespace coco::dispatch {
namespace {

using algorithms::Collective;
using algorithms::Exchange;

// One side of a call: which blocks, of what type, where.
struct SideArgs {
    const BufferArgs& args;
    std::int32_t blocks;
    bool sized;
    TypeFacts one_type;  // w forms have a type for each block instead
    // Neighbours: blocks to or from nobody; null where there are no neighbours.
    const std::vector<std::int32_t>* nobody = nullptr;

    // A block of nothing may be of no type, or of one that was freed.
    TypeFacts facts(std::int32_t block) const {
        if (args.types == nullptr) return one_type;
        return count_of(block) != 0 ? facts_of(args.types[block]) : TypeFacts{};
    }
    mpi::Datatype type_of(std::int32_t block) const {
        return args.types != nullptr ? args.types[block] : args.type;
    }
    std::int64_t count_of(std::int32_t block) const { return args.counts ? args.counts[block] : args.count; }
};

// How many blocks each side has, when every rank sends and receives.
std::int32_t send_blocks_of(Collective collective, const comm::Comm& comm) {
    if (is_neighbor(collective)) return comm.neighbors->graph_of(collective).send_blocks();
    return comm.ranks;
}
std::int32_t recv_blocks_of(Collective collective, const comm::Comm& comm) {
    if (is_neighbor(collective)) return comm.neighbors->graph_of(collective).recv_blocks;
    return comm.ranks;
}

// Whether blocks of nothing may be of no type.
bool takes_nothing_of_no_type() { return mpi::lib().manners.takes_nothing_of_no_type; }

// Of a w form. A type of nothing is not looked into: it may have been freed.
bool has_valid_type(const SideArgs& side, std::int32_t block) {
    if (side.count_of(block) != 0) return side.facts(block).valid;
    return takes_nothing_of_no_type() || side.args.types[block] != mpi::lib().datatype_null;
}

bool counts_are_valid(const SideArgs& side) {
    if (side.blocks == 0) return true;
    // Neighbours may send nothing of no type, where the MPI library takes that.
    if (side.args.types == nullptr && !side.one_type.valid)
        return takes_nothing_of_no_type() && side.nobody != nullptr && !side.sized && side.args.count == 0;
    if (side.sized && (!side.args.counts || !side.args.displacements)) return false;
    for (std::int32_t i = 0; i < (side.sized ? side.blocks : 1); ++i)
        if (side.count_of(i) < 0 || (side.args.types != nullptr && !has_valid_type(side, i))) return false;
    return true;
}

// Displacements count in extents of the type, for w forms in bytes.
std::int64_t displacement_of(const SideArgs& side, std::int32_t block, const TypeFacts& type) {
    if (!side.sized) return side.blocks == 1 ? 0 : block * side.args.count * type.extent_bytes;
    return side.args.displacements[block] * (side.args.types != nullptr ? 1 : type.extent_bytes);
}

// A null buffer is an error where there is data, unless types or displacements bring absolute addresses.
bool buffer_is_valid(const SideArgs& side) {
    if (side.args.buffer != nullptr) return true;
    for (std::int32_t i = 0; i < (side.sized ? side.blocks : std::min(side.blocks, 1)); ++i) {
        TypeFacts type = side.facts(i);
        if (side.count_of(i) != 0 && type.size_bytes != 0 &&
            displacement_of(side, i, type) + type.offset_bytes == 0)
            return false;
    }
    return true;
}

TypeFacts type_of_side(const BufferArgs& args, const TypeFacts* known) {
    if (known != nullptr) return *known;
    // Who has no neighbours may give no types.
    return args.types == nullptr && args.type != mpi::Datatype{} ? facts_of(args.type) : TypeFacts{};
}

// known: the side's type, if it was looked up before.
SideArgs send_side(const Args& args, const comm::Comm& comm, const TypeFacts* known = nullptr) {
    bool personal = base::is_personal(args.collective);
    std::int32_t blocks = send_blocks_of(args.collective, comm);
    return {.args = args.send,
            .blocks = personal ? blocks : std::min(blocks, 1),
            .sized = is_sized(args.collective) && personal,
            .one_type = type_of_side(args.send, known),
            .nobody = is_neighbor(args.collective) ? &comm.neighbors->to_nobody : nullptr};
}
SideArgs recv_side(const Args& args, const comm::Comm& comm, const TypeFacts* known = nullptr) {
    bool bcast = args.collective == Collective::bcast;
    return {.args = args.recv,
            .blocks = bcast ? 1 : recv_blocks_of(args.collective, comm),
            .sized = is_sized(args.collective),
            .one_type = type_of_side(args.recv, known),
            .nobody = is_neighbor(args.collective) ? &comm.neighbors->from_nobody : nullptr};
}

std::uint64_t bytes_of(const SideArgs& side, std::int32_t block) {
    return static_cast<std::uint64_t>(side.count_of(block)) * side.facts(block).size_bytes;
}

// MPI requires equal amounts on both sides; programs whose plain forms differ are left to it. In v and w
// forms exec moves what there is: a rank that went alone would be waited for.
// Neighbours' amounts have to agree along edges only.
bool amounts_agree(const Args& args, const SideArgs& send, const SideArgs& recv) {
    return recv.sized || is_neighbor(args.collective) || bytes_of(send, 0) == bytes_of(recv, 0);
}

// Whether a rank would write over what it still has to send. (An allgather's own block may lie where it is
// received: it is copied to itself.)
bool is_overwritten(const Args& args, const Common& common) {
    auto begin = [](const BufferArgs& side, const TypeFacts& type) {
        return reinterpret_cast<std::intptr_t>(side.buffer) + type.offset_bytes;
    };
    return args.collective == Collective::alltoall && !common.facts.in_place && common.block_bytes != 0 &&
           begin(args.send, common.send_type) == begin(args.recv, common.recv_type);
}

}  // namespace

void leave_out(std::span<const std::int32_t> nobody, std::span<blocks::BlockAt> blocks,
               std::uint64_t& total_bytes) {
    for (std::int32_t i : nobody) {
        total_bytes -= blocks[static_cast<std::size_t>(i)].bytes;
        blocks[static_cast<std::size_t>(i)] = {};
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
    BufferReader(const SideArgs& side, std::vector<blocks::BlockAt>& blocks, TypePacker& packer,
                 mpi::Comm comm)
        : side_(side),
          base_(static_cast<std::byte*>(const_cast<void*>(side.args.buffer))),
          blocks_(blocks),
          packer_(packer),
          comm_(comm) {}

    blocks::Buffer read() {
        blocks::Buffer buffer{.base = base_, .block_count = side_.blocks};
        if (side_.sized) {
            read_sized(buffer);
            if (side_.nobody != nullptr) leave_out(*side_.nobody, blocks_, buffer.total_bytes);
        } else {
            read_plain(buffer);
        }
        if (buffer.packer != nullptr) fill_packer();
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
        blocks_.resize(static_cast<std::size_t>(side_.blocks));
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
        buffer.base += side_.one_type.offset_bytes;
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

    const SideArgs& side_;
    std::byte* base_;
    std::vector<blocks::BlockAt>& blocks_;
    TypePacker& packer_;
    mpi::Comm comm_;
};

// In the midst of a call there is no way back to MPI: the other ranks are in it.
[[noreturn]] void stop_at(const char* what) {
    base::log(base::LogLevel::error, base::Text()
                                         << what << ": libcoco cannot go on (COCO_DISABLE=1 leaves it out)");
    mpi::lib().Abort(mpi::lib().comm_world, mpi::lib().constants.err_other);
    std::abort();
}

// In place, what is sent is what lies in the receive buffer: all of it, or for allgather this rank's own
// block.
blocks::Buffer in_place_send(const blocks::Buffer& recv, const comm::Comm& comm, bool personal,
                             Workspace& space) {
    blocks::Buffer send = recv;
    if (personal) return send;
    send.block_count = 1;
    if (recv.packer != nullptr) {
        space.send_packer.comm = space.recv_packer.comm;
        space.send_packer.blocks.assign(1, space.recv_packer.blocks[comm.rank]);
        send.packer = &space.send_packer;
    }
    if (recv.blocks.empty()) {
        send.base += comm.rank * recv.stride_bytes;
    } else {
        send.base += recv.blocks[comm.rank].displacement_bytes;
        BufferReader::make_sized(send, recv.blocks[comm.rank].bytes, space.send_blocks);
    }
    return send;
}

// The library packs int counts of elements, and ints of bytes, at a time. Of one element larger than that
// only the functions with _c do.
bool packs_large() { return mpi::lib().Pack_c != nullptr && mpi::lib().Unpack_c != nullptr; }

// Where elements lie that are to be packed, by an address that is not null. MPICH's MPI_Pack and MPI_Unpack
// refuse a null address even with a type of absolute addresses: the same elements are then named from another
// address, by a type that is made for this one call. Were it kept as an attribute of the program's type, that
// would never be freed: MPI counts every type that is made of it as a use of it.
class NotNull {
  public:
    NotNull(std::byte* at, mpi::Datatype type) : at_(at), type_(type) {
        if (at != nullptr) return;
        const int one = 1;
        const mpi::Aint behind = -kElsewhere;
        made_ = mpi::lib().Type_create_hindexed(1, &one, &behind, type, &type_) == mpi::kSuccess &&
                mpi::lib().Type_commit(&type_) == mpi::kSuccess;
        at_ = base::displaced(at, kElsewhere);
    }
    ~NotNull() {
        if (made_) mpi::lib().Type_free(&type_);
    }
    NotNull(const NotNull&) = delete;
    NotNull& operator=(const NotNull&) = delete;

    std::byte* at() const { return at_; }
    mpi::Datatype type() const { return type_; }

  private:
    static constexpr mpi::Aint kElsewhere = 4096;
    std::byte* at_;
    mpi::Datatype type_;
    bool made_ = false;
};

int pack_some(const NotNull& from, int count, std::byte* target, std::uint64_t bytes, mpi::Comm comm) {
    if (mpi::Count done = 0; bytes > INT_MAX)
        return mpi::lib().Pack_c(from.at(), count, from.type(), target, static_cast<mpi::Count>(bytes), &done,
                                 comm);
    int done = 0;
    return mpi::lib().Pack(from.at(), count, from.type(), target, static_cast<int>(bytes), &done, comm);
}

int unpack_some(const std::byte* source, std::uint64_t bytes, const NotNull& to, int count, mpi::Comm comm) {
    if (mpi::Count done = 0; bytes > INT_MAX)
        return mpi::lib().Unpack_c(source, static_cast<mpi::Count>(bytes), &done, to.at(), count, to.type(),
                                   comm);
    int done = 0;
    return mpi::lib().Unpack(source, static_cast<int>(bytes), &done, to.at(), count, to.type(), comm);
}

template <class Move>
void in_portions(const TypePacker::Block& block, Move move) {
    if (block.count == 0) return;  // perhaps of no type
    const TypeFacts type = facts_of(block.type);
    if (type.size_bytes > INT_MAX && !packs_large())
        stop_at("a datatype with holes and more than 2 GiB of data in one element");
    std::int64_t most = std::max<std::int64_t>(
        1, INT_MAX / std::max<std::int64_t>(1, static_cast<std::int64_t>(type.size_bytes)));
    for (std::int64_t done = 0; done < block.count; done += most) {
        int count = static_cast<int>(std::min(most, block.count - done));
        move(base::displaced(block.at, done * type.extent_bytes), count,
             static_cast<std::uint64_t>(done) * type.size_bytes,
             static_cast<std::uint64_t>(count) * type.size_bytes);
    }
}

}  // namespace

void TypePacker::pack(std::int32_t index, std::byte* target) const {
    const Block& block = blocks[index];
    in_portions(block, [&](std::byte* at, int count, std::uint64_t done, std::uint64_t bytes) {
        if (pack_some(NotNull(at, block.type), count, target + done, bytes, comm) != mpi::kSuccess)
            stop_at("packing failed");
    });
}

void TypePacker::unpack(std::int32_t index, const std::byte* source) const {
    const Block& block = blocks[index];
    in_portions(block, [&](std::byte* at, int count, std::uint64_t done, std::uint64_t bytes) {
        if (unpack_some(source + done, bytes, NotNull(at, block.type), count, comm) != mpi::kSuccess)
            stop_at("unpacking failed");
    });
}

Workspace& workspace() { return base::of_thread<Workspace, Workspace>(); }

namespace {

// Ranks without neighbours do not know the block size of those who have some.
bool has_common_block(Collective collective, const comm::Comm& comm) {
    if (is_neighbor(collective)) return !is_sized(collective) && !comm.neighbors->lonely;
    return !is_sized(collective) || collective == Collective::allgatherv;
}

bool receives_nothing(Collective collective, const comm::Comm& comm) {
    return is_neighbor(collective) && comm.neighbors->receives_nothing;
}

// By which the policy chooses in a plain form. Neighbours: where that makes it the same on all ranks, the
// larger of the two sizes of the sides that have edges.
void choose_by_both_sides(const Args& args, const comm::Comm& comm, Common& common) {
    if (!is_neighbor(args.collective) || !comm.neighbors->sizes_agree || comm.neighbors->sends_nothing)
        return;
    const std::uint64_t sent_bytes = bytes_of(send_side(args, comm), 0);
    common.names_two_sizes = comm.neighbors->one_size && sent_bytes != common.block_bytes;
    common.block_bytes = std::max(common.block_bytes, sent_bytes);
}

}  // namespace

Common read_common(const Args& args, const comm::Comm& comm) {
    Common common{
        .facts = {.collective = args.collective, .root = args.root, .sized = is_sized(args.collective)},
        .send_type = {},
        .recv_type = {}};
    bool in_place = args.collective != Collective::bcast && args.send.buffer == mpi::lib().constants.in_place;
    common.facts.in_place = in_place && !is_neighbor(args.collective);
    SideArgs recv = recv_side(args, comm);
    common.valid = args.root >= 0 && args.root < comm.ranks &&
                   args.recv.buffer != mpi::lib().constants.in_place && in_place == common.facts.in_place &&
                   counts_are_valid(recv) && buffer_is_valid(recv);
    common.recv_type = recv.one_type;
    if (common.valid && !common.facts.in_place && args.collective != Collective::bcast) {
        SideArgs send = send_side(args, comm);
        common.valid = counts_are_valid(send) && buffer_is_valid(send);
        common.doubtful = common.valid && !amounts_agree(args, send, recv);
        common.send_type = send.one_type;
    }
    if (!common.valid) return common;
    common.has_block = has_common_block(args.collective, comm);
    if (!common.facts.sized) {
        common.block_bytes =
            receives_nothing(args.collective, comm) ? bytes_of(send_side(args, comm), 0) : bytes_of(recv, 0);
        if (args.collective != Collective::bcast) common.facts.block_bytes = common.block_bytes;
        choose_by_both_sides(args, comm, common);
        common.recv_dense = common.recv_type.is_dense(static_cast<std::uint64_t>(args.recv.count));
        if (!common.facts.in_place && args.collective != Collective::bcast) {
            common.send_dense = common.send_type.is_dense(static_cast<std::uint64_t>(args.send.count));
        }
    } else if (common.has_block) {
        for (std::int32_t i = 0; i < comm.ranks; ++i)
            common.block_bytes = std::max(common.block_bytes, bytes_of(recv, i));
    }
    common.valid = !common.doubtful;
    common.refused_alias = !common.facts.in_place && is_refused_alias(args, comm.rank, common.recv_type);
    common.sends_copy = common.refused_alias || is_overwritten(args, common);
    return common;
}

std::int64_t read_blocks(const BufferArgs& side, std::uint64_t size_bytes, std::span<blocks::BlockAt> blocks,
                         std::uint64_t& total_bytes) {
    const Numbers &counts = side.counts, &displacements = side.displacements;
    if (counts.narrow() != nullptr && displacements.narrow() != nullptr)
        return read_blocks(counts.narrow(), displacements.narrow(), size_bytes, blocks, total_bytes);
    return read_blocks(counts.wide(), displacements.wide(), size_bytes, blocks, total_bytes);
}

namespace {

blocks::Buffer dense_buffer(const BufferArgs& args, const TypeFacts& type, std::int32_t blocks) {
    return {.base = static_cast<std::byte*>(const_cast<void*>(args.buffer)) + type.offset_bytes,
            .stride_bytes = args.count * type.extent_bytes,
            .block_bytes = static_cast<std::uint64_t>(args.count) * type.size_bytes,
            .block_count = blocks};
}

}  // namespace

void read_local(const Args& args, const comm::Comm& comm, const Common& common, Workspace& space,
                exec::LocalFacts& local) {
    bool bcast = args.collective == Collective::bcast;
    bool personal = base::is_personal(args.collective);
    if (common.recv_dense && (common.send_dense || bcast)) {
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
    blocks::Buffer buffer = BufferReader(recv, space.recv_blocks, space.recv_packer, args.comm).read();
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
    local.send = BufferReader(send, space.send_blocks, space.send_packer, args.comm).read();
    if (common.facts.sized && !personal)
        BufferReader::make_sized(local.send, bytes_of(send, 0), space.send_blocks);
}

}  // namespace coco::dispatch
